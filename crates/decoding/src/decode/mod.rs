//! The decoding loop: a model's log-probabilities of all open slots in, a few tokens kept, and again.
//!
//! It knows neither models nor methods: a [`Model`] gives weights, a [`Strategy`] says what may be kept,
//! [`DecodeOptions`] say in which order and how many at a time. What happened is in the [`Trace`].
//!
//! | module | what |
//! |---|---|
//! | [`model`] | what is asked of a model |
//! | [`options`] | order, pace, blocks, sampling, what becomes of earlier tokens |
//! | [`rows`] | an answer of a model, and what of it can still be proposed |
//! | [`strategy`] | what a method does within the loop; all methods by name |
//! | [`exact`], [`lave`], [`sequential`], [`asked`] | the methods |
//! | [`trace`] | what happened |
//! | `run` | the loop itself |
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use anygram_decoding::decode::{DecodeOptions, Decoder, Model, ModelError, OpenSlots, STRATEGIES, View};
//! use anygram_any_order::{Canvas, End, Slot};
//! use anygram_left_to_right::{Constraint, Language, LanguageOptions};
//! use anygram_vocab::{Format, LoadOptions, TokenId, Vocabulary};
//!
//! /// Likes opening brackets best, closing ones next, and never ends.
//! struct Eager;
//!
//! impl Model for Eager {
//!     fn vocabulary_size(&self) -> usize {
//!         4
//!     }
//!     fn open_slots(&self) -> OpenSlots {
//!         OpenSlots::Mask(TokenId(3))
//!     }
//!     fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
//!         assert_eq!(rows.len(), 4 * view.wanted.len());
//!         rows.chunks_mut(4).for_each(|row| row.copy_from_slice(&[-0.1, -3.0, -9.0, 0.0]));
//!         Ok(())
//!     }
//! }
//!
//! let grammar = anygram_grammar::lark::parse(r#"start: "(" start ")" | "()""#, &Default::default())?;
//! let language = Arc::new(Language::new(grammar, &LanguageOptions::default())?);
//! let special = LoadOptions { eos: vec![2], mask: Some(3), ..LoadOptions::default() };
//! let vocabulary = Vocabulary::from_bytes(Format::JsonArray, br#"["(", ")", null, null]"#, &special)?;
//! let constraint = Constraint::new(language, vocabulary)?;
//!
//! let canvas = Canvas::new(vec![Slot::Hole; 6], End::Sentence);
//! for strategy in STRATEGIES {
//!     let mut decoder = Decoder::new(&constraint, strategy.make(&constraint)?);
//!     let decoded = decoder.decode(&canvas, &mut Eager, &DecodeOptions::default())?;
//!     if strategy.name == "exact" {
//!         assert_eq!(decoded.tokens(), Some([0, 0, 0, 1, 1, 1].map(TokenId).to_vec()));
//!     }
//!     let (n_proposed, n_refused) = (decoded.trace.proposals().count(), decoded.trace.n_refused());
//!     println!("{}: {n_proposed} proposals, {n_refused} refused", strategy.name);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod asked;
pub mod exact;
pub mod lave;
pub mod model;
pub mod options;
pub mod recorded;
pub mod rows;
pub mod sequential;
pub mod strategy;
pub mod trace;

mod run;

use anygram_any_order::{Canvas, CanvasError, Slot};
use anygram_bits::ErrorKind;
use anygram_left_to_right::{Constraint, MatchError};
use anygram_vocab::TokenId;

pub use asked::Asked;
pub use exact::{Exact, ExactBy};
pub use lave::Lave;
pub use model::{Answer, Model, ModelError, OpenSlots, View};
pub use options::{DecodeOptions, Order, Pace, Revision, Sampling};
pub use recorded::{Answered, Recorded};
pub use rows::Rows;
pub use sequential::Sequential;
pub use strategy::{Configured, Named, Recovery, STRATEGIES, Strategy};
pub use trace::{Event, Ground, Judgement, Proposal, Trace, Why};

/// Why a canvas could not be filled.
///
/// An enum because models and strategies of users return it too.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The options contradict themselves.
    #[error("invalid options: {0}")]
    Options(&'static str),
    /// No strategy has this name, or it does not take these parameters.
    #[error(
        "no strategy is called `{name}`; there are {known}, and `lookahead` with parameters, as in \
         lookahead:N=3:tau=10 and lookahead:published"
    )]
    Strategy {
        /// The name as it was given.
        name: String,
        /// The names of all strategies.
        known: String,
    },
    /// The model failed.
    #[error("the model gave no log-probabilities: {0}")]
    Model(#[source] ModelError),
    /// The model is for a smaller vocabulary.
    #[error("the model knows {columns} tokens, the constraint {size}; are they of the same vocabulary?")]
    Columns {
        /// The length of a row.
        columns: usize,
        /// The size of the vocabulary.
        size: usize,
    },
    /// A model answered for another number of slots than were wanted.
    #[error("the model answered for {n_rows} slots; {n_wanted} were wanted")]
    Rows {
        /// Rows that it gave.
        n_rows: usize,
        /// Slots that were wanted.
        n_wanted: usize,
    },
    /// Another run of the decoder has begun since.
    #[error("another run of this decoder has begun: make a decoder for each run that goes on beside others")]
    Stale,
    /// A question about the canvas could not be answered, or what the model wrote are no log-probabilities.
    #[error(transparent)]
    Canvas(#[from] CanvasError),
}

impl DecodeError {
    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Options(_)
            | Self::Strategy { .. }
            | Self::Columns { .. }
            | Self::Rows { .. }
            | Self::Stale => ErrorKind::InvalidArgument,
            Self::Model(_) => ErrorKind::Model,
            Self::Canvas(error) => error.kind(),
        }
    }

    /// The limit that was reached: its name, which [`Limits::set`](anygram_left_to_right::Limits::set) takes,
    /// and its value.
    pub fn limit(&self) -> Option<(&'static str, u64)> {
        match self {
            Self::Canvas(error) => error.limit(),
            _ => None,
        }
    }
}

impl From<MatchError> for DecodeError {
    fn from(error: MatchError) -> Self {
        Self::Canvas(error.into())
    }
}

/// How a run ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Decoded {
    /// The canvas as it was filled, its gaps closed; without holes unless the run was stuck.
    pub canvas: Canvas,
    /// Whether nothing could be kept any more.
    pub is_stuck: bool,
    /// What happened.
    pub trace: Trace,
}

impl Decoded {
    /// The tokens of all slots, if all are filled.
    pub fn tokens(&self) -> Option<Vec<TokenId>> {
        let token = |slot: &Slot| match slot {
            Slot::Fixed(token) => Some(*token),
            Slot::Hole | Slot::Gap => None,
        };
        self.canvas.slots().iter().map(token).collect()
    }
}

/// Fills canvases of one constraint by one strategy.
///
/// ```
/// # use anygram_decoding::decode::{DecodeOptions, Decoder, Exact, ExactBy};
/// # use anygram_decoding::decode::{Model, ModelError, OpenSlots, View};
/// # use anygram_any_order::{Canvas, End, Slot};
/// struct Flat;
///
/// /// All tokens are equally likely everywhere.
/// impl Model for Flat {
///     fn vocabulary_size(&self) -> usize {
///         4
///     }
///     fn open_slots(&self) -> OpenSlots {
///         OpenSlots::Noise
///     }
///     fn log_probs(&mut self, _view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
///         rows.fill(-2.0);
///         Ok(())
///     }
/// }
///
/// # use std::sync::Arc;
/// # use anygram_left_to_right::{Constraint, Language, LanguageOptions};
/// # use anygram_vocab::{SpecialIds, TokenId, Vocabulary};
/// # let grammar = anygram_grammar::lark::parse(r#"start: "(" start ")" | "x""#, &Default::default())?;
/// # let language = Arc::new(Language::new(grammar, &LanguageOptions::default())?);
/// # let special = SpecialIds { eos: vec![3], ..SpecialIds::default() };
/// # let vocabulary = Vocabulary::from_tokens(["(", ")", "x", ""], special)?;
/// # let constraint = Constraint::new(language, vocabulary)?;
/// // The grammar is  start: "(" start ")" | "x"  and the tokens are "(", ")", "x" and EOS.
/// let [open, close, x, _] = [0, 1, 2, 3].map(TokenId);
/// let strategy = Exact::new(&constraint, ExactBy::Compatible)?;
/// let mut decoder = Decoder::new(&constraint, Box::new(strategy));
/// let canvas = Canvas::new([Slot::Fixed(open), Slot::Hole, Slot::Hole].to_vec(), End::Sentence);
/// let decoded = decoder.decode(&canvas, &mut Flat, &DecodeOptions::default())?;
/// assert_eq!(decoded.tokens(), Some(vec![open, x, close]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Decoder {
    constraint: Constraint,
    strategy: Box<dyn Strategy>,
    /// The number of runs so far: the last one alone can go on.
    n_runs: u64,
}

/// A run of a [`Decoder`] whose model is asked by somebody else: a loop that is not ours, or one that does
/// other work while the model computes ([`Decoder::begin`]).
#[derive(Clone, Debug)]
pub struct Session {
    run: run::Run,
    /// Which run of the decoder it is.
    number: u64,
}

impl Session {
    /// The slots as they are, without gaps; holes where nothing was kept yet.
    pub fn slots(&self) -> &[Slot] {
        self.run.slots()
    }

    /// How it ended, or how far it came.
    pub fn decoded(self) -> Decoded {
        self.run.decoded()
    }
}

impl Decoder {
    /// With a strategy that was made for this constraint.
    pub fn new(constraint: &Constraint, strategy: Box<dyn Strategy>) -> Self {
        Self { constraint: constraint.clone(), strategy, n_runs: 0 }
    }

    /// Fills the holes of a canvas. Fixed slots stay as they are, pinned or not. A gap is a place where slots
    /// can be inserted, as many as [`DecodeOptions::inserted`] allows: strategies that know how much room is
    /// needed (`exact` and its kin) make it, with others gaps stay closed.
    ///
    /// Reproducible: what happens depends on what is given, the seed among it, on nothing else, as long as no
    /// limit is hit and the weights do not exclude every completion (then `exact` takes any).
    ///
    /// Cost: [`DecodeOptions::steps`] questions to the model, or a few more; for each the strategy's
    /// restriction, and for each proposal its judgement and a look at the log-probabilities of one slot.
    pub fn decode(
        &mut self,
        canvas: &Canvas,
        model: &mut dyn Model,
        options: &DecodeOptions,
    ) -> Result<Decoded, DecodeError> {
        let (columns, size) = (model.vocabulary_size(), self.constraint.vocabulary().len());
        if columns < size {
            return Err(DecodeError::Columns { columns, size });
        }
        let mut session = self.begin(canvas, model.open_slots(), options)?;
        while let Some(view) = self.view(&mut session)? {
            let mut values = vec![0.0; view.wanted.len() * columns];
            model.log_probs(&view, &mut values).map_err(DecodeError::Model)?;
            self.answer(&mut session, Answer::Dense { values: &values, columns }, None)?;
        }
        Ok(session.decoded())
    }

    /// Begins a run that goes on by [`Decoder::view`] and [`Decoder::answer`], one after the other until
    /// there is no view. It ends when the decoder begins another one.
    ///
    /// What happens is what [`Decoder::decode`] does with a model that answers the same.
    pub fn begin(
        &mut self,
        canvas: &Canvas,
        open_slots: OpenSlots,
        options: &DecodeOptions,
    ) -> Result<Session, DecodeError> {
        let run = run::Run::new(&self.constraint, &mut *self.strategy, canvas, open_slots, options)?;
        self.n_runs += 1;
        Ok(Session { run, number: self.n_runs })
    }

    /// What the model is asked next, the same until it is answered; `None` if nothing is left to fill, or the
    /// run is stuck.
    pub fn view<'s>(&mut self, session: &'s mut Session) -> Result<Option<View<'s>>, DecodeError> {
        self.check(session)?;
        session.run.view(&mut *self.strategy)
    }

    /// Does work of the step that needs no answer, while the model makes it. It changes no token, and does
    /// nothing before the first view.
    pub fn prepare(&mut self, session: &mut Session) -> Result<(), DecodeError> {
        self.check(session)?;
        session.run.prepare(&mut *self.strategy)
    }

    /// Keeps tokens by what the model answered to the view. If its shape is wrong, the same view can be
    /// answered again.
    ///
    /// Tokens that are `given` (slots and tokens, as a sampler of the model's own proposes them) are tried
    /// first, in their order, as far as the strategy lets them be proposed, and as many tokens are kept as
    /// are given: in place of those that are refused, the surest of what is left.
    pub fn answer(
        &mut self,
        session: &mut Session,
        answer: Answer<'_>,
        given: Option<&[(usize, TokenId)]>,
    ) -> Result<(), DecodeError> {
        self.check(session)?;
        session.run.answer(&mut *self.strategy, answer, given)
    }

    fn check(&self, session: &Session) -> Result<(), DecodeError> {
        if session.number == self.n_runs { Ok(()) } else { Err(DecodeError::Stale) }
    }
}
