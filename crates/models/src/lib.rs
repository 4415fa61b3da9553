//! Three small models that are part of the repository: the tasks that they were trained on, and their forward
//! passes.
//!
//! They are transformers of 0.74 million parameters, trained by `training/train.py` on examples of [`tasks`].
//! Their weights are part of the program; nothing is loaded from outside. They show what a constraint is
//! worth without a download, and are good for nothing else.
//!
//! | [`Kind`] | sees in an open slot | says |
//! |---|---|---|
//! | `autoregressive` | nothing: only what stands before | what comes next |
//! | `masked` (as LLaDA) | MASK | what belongs into each masked slot |
//! | `uniform` (as DiffusionGemma) | any token | what each slot should hold, whatever it holds |
//!
//! In reading order:
//!
//! - [`tasks`]: prompts, answers, grammars and checks, from seeds.
//! - [`vocabulary`]: the tokenizer that the three share.
//! - [`SmallModel`]: weights, and the forward pass in `f32` on one core. Compared with the logits of PyTorch
//!   by `tests/it/models.rs`.
//! - [`Session`]: a model at a prompt, as the decoding loop asks it.
//!
//! ```
//! use anygram_decoding::decode::{DecodeOptions, Decoder, Named};
//! use anygram::{Canvas, End, Slot};
//! use anygram_left_to_right::{Constraint, Language, LanguageOptions};
//! use anygram_models::tasks::{Split, Task};
//! use anygram_models::{Kind, vocabulary};
//! use std::sync::Arc;
//!
//! let grammar = anygram_grammar::lark::parse(Task::Arithmetic.grammar(), &Default::default())?;
//! let language = Arc::new(Language::new(grammar, &LanguageOptions::default())?);
//! let constraint = Constraint::new(language, vocabulary()?)?;
//! let example = &Task::Arithmetic.examples(Split::HeldOut, 1, 1)[0];
//!
//! let mut session = Kind::Masked.model()?.session(&vocabulary()?.encode(&example.prompt)?)?;
//! let canvas = Canvas::new(vec![Slot::Hole; 20], End::Sentence);
//! let exact = Named::find("exact").expect("there is a strategy of this name").make(&constraint)?;
//! let options = DecodeOptions { steps: 8, block: None, ..DecodeOptions::default() };
//! let decoded = Decoder::new(&constraint, exact).decode(&canvas, &mut session, &options)?;
//! assert!(!decoded.is_stuck);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The weights are stored as `f16`. `README.md` of this crate says what the models can do, as measured, and
//! `training/README.md` how they were made.

mod error;
mod model;
mod session;
pub mod tasks;
mod transformer;
mod weights;

pub use error::SmallModelError;
pub use model::{Kind, SmallModel};
pub use session::Session;

use anygram_vocab::{Format, LoadOptions, TokenId, VocabError, Vocabulary};
use std::sync::OnceLock;

/// Ends an answer; what follows it in a canvas of the models is EOS too.
pub const EOS: TokenId = TokenId(0);
/// Filled up batches in training. No model writes it.
pub const PAD: TokenId = TokenId(1);
/// What stands in an open slot of [`Kind::Masked`].
pub const MASK: TokenId = TokenId(2);

/// The tokenizer of the three models: byte-level BPE with 672 tokens, some of which cross terminals (`":`,
/// `"},{"`, `)*(`), with [`EOS`], [`PAD`] and [`MASK`]. Read on the first call.
///
/// # Errors
/// None, as long as the crate's own file can be read (a test says so).
pub fn vocabulary() -> Result<Vocabulary, VocabError> {
    static VOCABULARY: OnceLock<Vocabulary> = OnceLock::new();
    if let Some(vocabulary) = VOCABULARY.get() {
        return Ok(vocabulary.clone());
    }
    let options =
        LoadOptions { eos: vec![EOS.0], pad: Some(PAD.0), mask: Some(MASK.0), ..LoadOptions::default() };
    let vocabulary =
        Vocabulary::from_bytes(Format::HuggingFace, include_bytes!("../data/tokenizer.json"), &options)?;
    Ok(VOCABULARY.get_or_init(|| vocabulary).clone())
}
