//! Errors of model files and of questions to a model.

use anygram_vocab::TokenId;

/// Why a model could not be read or asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SmallModelError {
    /// It is not a safetensors file.
    #[error("the model is not a safetensors file: {0}")]
    File(String),
    /// The file does not say what kind of model it has, or one that is not known.
    #[error(
        "the metadata of the model must say `kind`: autoregressive, masked or uniform, and `canvas`, a \
         number of slots"
    )]
    Metadata,
    /// The model has no such tensor, or it is of another type or shape.
    #[error("the model needs a tensor `{name}` of type F16 or F32 and shape {shape:?}")]
    Tensor {
        /// Which.
        name: String,
        /// Rows and columns; 0 stands for any number.
        shape: Vec<usize>,
    },
    /// A token is not of the model's vocabulary.
    #[error("token {token} is none of the model's {n_tokens}: encode with the model's own \
             tokenizer", token = .token.0)]
    Token {
        /// Which.
        token: TokenId,
        /// How many there are.
        n_tokens: usize,
    },
    /// A slot was asked for that the model cannot know.
    #[error(
        "slot {slot} of {n_slots} cannot be asked for: a model sees its canvas, an autoregressive one also \
         the slot behind it"
    )]
    Slot {
        /// Which.
        slot: usize,
        /// How many there are.
        n_slots: usize,
    },
    /// The prompt and the canvas are longer than [`SmallModel::MAX_TOKENS`](crate::SmallModel::MAX_TOKENS).
    #[error("{given} tokens are more than the {most} that a model takes: shorten the prompt or the canvas")]
    TooLong {
        /// Tokens of the prompt and the canvas.
        given: usize,
        /// The limit.
        most: usize,
    },
    /// A model was asked without a prompt.
    #[error("a model needs a prompt: what belongs into a slot is read at the token before it")]
    NoPrompt,
    /// The buffer is not as long as the rows.
    #[error("rows of {wanted} numbers in all do not fit into a buffer of {given}")]
    Buffer {
        /// Slots times tokens.
        wanted: usize,
        /// Numbers in the buffer.
        given: usize,
    },
}
