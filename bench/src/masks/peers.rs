//! The other engines. llguidance reads the grammars of all workloads as they are; if it cannot read one, its
//! message is reported.

use std::sync::Arc;

use anygram::{GrammarFormat, TokenId, Vocabulary};
use anyhow::{Context, Result};
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, SimpleVob, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};

use super::engine::{Engine, Maker};

/// The peer without its limits.
pub const RAISED: &str = "llguidance, raised";

/// llguidance, as it comes and with its limits out of the way.
pub fn makers(vocabulary: &Vocabulary) -> Result<Vec<Maker>> {
    let environment = environment(vocabulary)?;
    Ok(vec![maker(&environment, "llguidance", false)?, maker(&environment, RAISED, true)?])
}

/// llguidance with its limits out of the way.
pub fn raised(vocabulary: &Vocabulary) -> Result<Maker> {
    maker(&environment(vocabulary)?, RAISED, true)
}

fn maker(environment: &TokEnv, name: &'static str, is_raised: bool) -> Result<Maker> {
    let mut factory = ParserFactory::new_simple(environment)?;
    factory.quiet();
    if is_raised {
        let limits = factory.limits_mut();
        limits.max_items_in_row = LARGE;
        limits.step_max_items = LARGE;
        limits.max_lexer_states = LARGE;
        limits.max_grammar_size = LARGE;
        limits.initial_lexer_fuel = LARGE as u64;
        limits.step_lexer_fuel = LARGE as u64;
    }
    let make = move |format, grammar: &str| -> Result<Box<dyn Engine>, String> {
        let grammar = match format {
            GrammarFormat::JsonSchema => TopLevelGrammar::from_json_schema(
                serde_json::from_str(grammar).map_err(|error| format!("syntax: {error}"))?,
            ),
            _ => TopLevelGrammar::from_lark(grammar.to_owned()),
        };
        let start = Matcher::new(factory.create_parser(grammar));
        match start.get_error() {
            Some(error) => Err(short(&error)),
            None => Ok(Box::new(LlGuidance { output: start.clone(), start, mask: None })),
        }
    };
    Ok(Maker { name, make: Box::new(make) })
}

/// A limit that nothing comes near to, and that sums of a few do not overflow.
const LARGE: usize = 1 << 50;

/// Our vocabulary as theirs: the same ids and bytes.
fn environment(vocabulary: &Vocabulary) -> Result<TokEnv> {
    let eos = vocabulary.eos().first().context("the vocabulary has no token that ends a text")?;
    let info = TokRxInfo::new(vocabulary.len() as u32, eos.0);
    let special = |id: TokenId| {
        let name = vocabulary.name(id).map_or_else(|| format!("<[{}]>", id.0), str::to_owned);
        [&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat()
    };
    let bytes = |id: TokenId| vocabulary.bytes(id).map_or_else(|| special(id), <[u8]>::to_vec);
    let words: Vec<Vec<u8>> = (0..vocabulary.len()).map(|id| bytes(TokenId(id as u32))).collect();
    Ok(Arc::new(ApproximateTokEnv::new(TokTrie::from(&info, &words))))
}

/// The first line of a message, without the state that follows it.
fn short(message: &str) -> String {
    let line = message.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message");
    line.chars().take(160).collect()
}

struct LlGuidance {
    start: Matcher,
    output: Matcher,
    mask: Option<SimpleVob>,
}

impl Engine for LlGuidance {
    fn begin(&mut self) {
        // A clone shares the automaton of the lexer, which is all that stays from output to output.
        self.output = self.start.clone();
    }

    fn mask(&mut self) -> Result<(), String> {
        self.mask = None;
        self.mask = Some(self.output.compute_mask_or_eos().map_err(|error| short(&error.to_string()))?);
        Ok(())
    }

    fn allows(&self, token: u32) -> bool {
        self.mask.as_ref().is_some_and(|mask| mask.is_allowed(token))
    }

    fn advance(&mut self, token: u32) -> Result<bool, String> {
        let consumed = self.output.consume_token(token);
        // The mask tells a token that may not come from a limit that was hit, and holds for one token.
        let is_refused = self.mask.take().is_some_and(|mask| !mask.is_allowed(token));
        match consumed {
            Ok(()) => Ok(true),
            Err(_) if is_refused => Ok(false),
            Err(error) => Err(short(&error.to_string())),
        }
    }

    fn is_sentence(&mut self) -> bool {
        if self.output.is_stopped() {
            return !self.output.is_error();
        }
        self.output.is_accepting().unwrap_or(false)
    }

    fn memory(&self) -> Option<usize> {
        None
    }

    fn fork(&mut self) -> Box<dyn Engine> {
        Box::new(Self { start: self.start.clone(), output: self.start.clone(), mask: None })
    }
}
