//! What is measured: an engine with one grammar and one vocabulary.

use std::sync::Arc;

use anygram::{Compiler, Constraint, GrammarFormat, MatchError, Matcher, TokenId, Vocabulary};
use anygram_left_to_right::tokens::get_bit;

/// The name of our own engine.
pub const OURS: &str = "anygram";

/// One output at a time, over tables that stay from output to output.
pub trait Engine {
    /// Starts a new output.
    fn begin(&mut self);
    /// Computes the mask and keeps it until `advance`.
    fn mask(&mut self) -> Result<(), String>;
    /// Whether the mask that is kept allows a token.
    fn allows(&self, token: u32) -> bool;
    /// The words of the mask that is kept, where the engine shows them.
    fn words(&self) -> &[u32] {
        &[]
    }
    /// Appends a token; false if it is refused.
    fn advance(&mut self, token: u32) -> Result<bool, String>;
    /// Whether the text may end here.
    fn is_sentence(&mut self) -> bool;
    /// Bytes of all tables, where the engine can tell.
    fn memory(&self) -> Option<usize>;
    /// An output of its own at the start, over the same tables as far as the engine shares them.
    fn fork(&mut self) -> Box<dyn Engine>;
}

/// Compiles a grammar in Lark's notation or a JSON schema.
type Make = Box<dyn Fn(GrammarFormat, &str) -> Result<Box<dyn Engine>, String>>;

/// An engine by name, with the vocabulary loaded.
pub struct Maker {
    pub name: &'static str,
    pub make: Make,
}

/// Our engine where each output has to be a sentence within a budget of tokens.
pub fn within_budget(vocabulary: &Vocabulary, budget: u32) -> Maker {
    let vocabulary = vocabulary.clone();
    let make = move |format, grammar: &str| -> Result<Box<dyn Engine>, String> {
        let plain = Ours::new(format, grammar, &vocabulary)?;
        Ok(Box::new(Ours { budget: Some((budget, budget)), ..plain }))
    };
    Maker { name: "within budget", make: Box::new(make) }
}

/// Our engine.
pub fn ours(vocabulary: &Vocabulary) -> Maker {
    let own = vocabulary.clone();
    let make = move |format, grammar: &str| -> Result<Box<dyn Engine>, String> {
        Ok(Box::new(Ours::new(format, grammar, &own)?))
    };
    Maker { name: OURS, make: Box::new(make) }
}

/// Our engine, and those that it is compared with.
pub fn makers(vocabulary: &Vocabulary) -> anyhow::Result<Vec<Maker>> {
    #[allow(unused_mut, reason = "others come with a feature")]
    let mut makers = vec![ours(vocabulary)];
    #[cfg(feature = "peers")]
    makers.extend(super::peers::makers(vocabulary)?);
    Ok(makers)
}

/// A matcher of ours, in its state of an empty text. What it refuses begins with the kind of the error.
pub fn matcher(format: GrammarFormat, grammar: &str, vocabulary: &Vocabulary) -> Result<Matcher, String> {
    let language = Compiler::default()
        .compile(format, grammar)
        .map_err(|error| format!("{}: {error}", error.kind().name()))?;
    let constraint =
        Constraint::new(Arc::clone(&language), vocabulary.clone()).map_err(|error| error.to_string())?;
    constraint.matcher().map_err(|error| error.to_string())
}

struct Ours {
    matcher: Matcher,
    words: Vec<u32>,
    /// Of tokens, whole and what is left of it.
    budget: Option<(u32, u32)>,
}

impl Ours {
    fn new(format: GrammarFormat, grammar: &str, vocabulary: &Vocabulary) -> Result<Self, String> {
        let matcher = matcher(format, grammar, vocabulary)?;
        Ok(Self { words: vec![0; matcher.constraint().mask_words()], matcher, budget: None })
    }
}

impl Engine for Ours {
    fn begin(&mut self) {
        self.matcher.reset();
        self.budget = self.budget.map(|(whole, _)| (whole, whole));
    }

    fn mask(&mut self) -> Result<(), String> {
        let words = &mut self.words;
        let made = match self.budget {
            Some((_, left)) => self.matcher.mask_with_budget_into(left, words),
            None => self.matcher.mask_into(words),
        };
        made.map_err(|error| error.to_string())
    }

    fn allows(&self, token: u32) -> bool {
        get_bit(&self.words, TokenId(token).index())
    }

    fn words(&self) -> &[u32] {
        &self.words
    }

    fn advance(&mut self, token: u32) -> Result<bool, String> {
        match self.matcher.advance(TokenId(token)) {
            Ok(()) => {
                self.budget = self.budget.map(|(whole, left)| (whole, left.saturating_sub(1)));
                Ok(true)
            }
            Err(MatchError::Refused(_)) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    fn is_sentence(&mut self) -> bool {
        self.matcher.is_sentence()
    }

    fn memory(&self) -> Option<usize> {
        Some(self.matcher.constraint().language().memory_usage() + self.matcher.memory_usage())
    }

    fn fork(&mut self) -> Box<dyn Engine> {
        let mut matcher = self.matcher.fork();
        matcher.reset();
        let budget = self.budget.map(|(whole, _)| (whole, whole));
        Box::new(Self { matcher, words: vec![0; self.words.len()], budget })
    }
}
