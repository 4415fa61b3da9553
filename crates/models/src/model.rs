//! A model as a value: what kind it is, and its weights.

use crate::transformer::Cache;
use crate::weights::Weights;
use crate::{MASK, Session, SmallModelError};
use anygram_vocab::TokenId;
use ndarray::Axis;
use safetensors::SafeTensors;
use std::sync::{Arc, OnceLock};

/// What a model was trained for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// The next token from those before.
    Autoregressive,
    /// The tokens behind MASK, from all others (LLaDA).
    Masked,
    /// All tokens, from a canvas in which any of them may be wrong (DiffusionGemma).
    Uniform,
}

/// A small transformer: immutable, cheap to clone, shared by threads.
#[derive(Clone, Debug)]
pub struct SmallModel {
    weights: Arc<Weights>,
    kind: Kind,
    canvas: usize,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Autoregressive, Self::Masked, Self::Uniform];

    /// As it is called on the command line and in the model's file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Autoregressive => "autoregressive",
            Self::Masked => "masked",
            Self::Uniform => "uniform",
        }
    }

    /// The kind of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The model of this kind that is part of this crate. Read on the first call, in a few milliseconds.
    ///
    /// # Errors
    /// None, as long as the crate's own file can be read (a test says so).
    pub fn model(self) -> Result<SmallModel, SmallModelError> {
        static MODELS: [OnceLock<Result<SmallModel, SmallModelError>>; 3] = [const { OnceLock::new() }; 3];
        let (model, bytes): (_, &[u8]) = match self {
            Self::Autoregressive => (&MODELS[0], include_bytes!("../data/autoregressive.safetensors")),
            Self::Masked => (&MODELS[1], include_bytes!("../data/masked.safetensors")),
            Self::Uniform => (&MODELS[2], include_bytes!("../data/uniform.safetensors")),
        };
        model.get_or_init(|| SmallModel::from_bytes(bytes)).clone()
    }
}

impl SmallModel {
    /// The most tokens that a prompt and a canvas may have. The models were trained with at most 80.
    pub const MAX_TOKENS: usize = 4096;

    /// Reads a file as `training/train.py` writes it. O(weights).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SmallModelError> {
        let broken = |error: safetensors::SafeTensorError| SmallModelError::File(error.to_string());
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let said = |key: &str| header.metadata().as_ref()?.get(key);
        let kind = said("kind").and_then(|kind| Kind::by_name(kind)).ok_or(SmallModelError::Metadata)?;
        let canvas = said("canvas").and_then(|n| n.parse().ok()).ok_or(SmallModelError::Metadata)?;
        let weights = Weights::read(&SafeTensors::deserialize(bytes).map_err(broken)?)?;
        Ok(Self { weights: Arc::new(weights), kind, canvas })
    }

    /// What it was trained for.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The slots of the canvases that it was trained on, enough for all answers of all
    /// [`tasks`](crate::tasks) with one EOS.
    pub fn canvas_length(&self) -> usize {
        self.canvas
    }

    /// The number of its tokens.
    pub fn vocabulary_size(&self) -> usize {
        self.weights.embedding.nrows()
    }

    /// The number of its weights.
    pub fn n_parameters(&self) -> usize {
        let Weights { embedding, layers, norm } = &*self.weights;
        let in_layer = |layer: &crate::weights::LayerWeights| {
            let norms = layer.attention_norm.len() + layer.mlp_norm.len();
            norms + layer.qkv.len() + layer.out.len() + layer.gate_up.len() + layer.down.len()
        };
        embedding.len() + norm.len() + layers.iter().map(in_layer).sum::<usize>()
    }

    /// Answers to one prompt.
    pub fn session(&self, prompt: &[TokenId]) -> Result<Session, SmallModelError> {
        Session::new(self.clone(), prompt)
    }

    /// Natural log-probabilities of all tokens for some slots of a canvas behind a prompt,
    /// `[slots, vocabulary_size]` row by row. [`MASK`] has none; an autoregressive model knows the slot
    /// behind the canvas too.
    pub fn log_probs(
        &self,
        prompt: &[TokenId],
        canvas: &[TokenId],
        slots: &[usize],
    ) -> Result<Vec<f32>, SmallModelError> {
        let mut rows = vec![0.0; slots.len() * self.vocabulary_size()];
        self.session(prompt)?.rows(canvas, slots, &mut rows)?;
        Ok(rows)
    }

    /// The same for tokens of prompt and canvas together, into `rows`. `wanted` are places whose hidden
    /// states give the rows, from `cache.tokens.len()` on; tokens are checked, and places are below their
    /// number.
    pub(crate) fn fill(&self, tokens: &[TokenId], wanted: &[usize], cache: &mut Cache, rows: &mut [f32]) {
        let first = cache.tokens.len();
        let states = self.weights.forward(&tokens[first..], self.kind == Kind::Autoregressive, cache);
        let wanted: Vec<usize> = wanted.iter().map(|place| place - first).collect();
        let mut log_probs = self.weights.log_probs(&states.select(Axis(0), &wanted).view());
        if MASK.index() < log_probs.ncols() {
            log_probs.column_mut(MASK.index()).fill(f32::NEG_INFINITY);
        }
        for (to, from) in rows.iter_mut().zip(&log_probs) {
            *to = *from;
        }
    }
}
