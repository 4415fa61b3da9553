//! Teacher-forced decoding of one text, step by step.

use anygram::{CaptureEvent, Captures, Constraint, MatchError};
use anygram_left_to_right::tokens::get_bit;
use anyhow::{Context, Result, bail};
use cpu_time::ThreadTime;
use serde::Serialize;
use serde_json::Value;

use super::subject::Subject;
use super::{Question, us};
use crate::commands::check::tree;

/// How it went.
#[derive(Serialize, Default)]
pub struct Replayed {
    /// Tokens that were read.
    steps: usize,
    /// The index of the token that was not in its mask.
    rejected_at: Option<usize>,
    /// Whether what was read is a sentence, and no token was rejected.
    sentence: bool,
    mask_us: Vec<f64>,
    advance_us: Vec<f64>,
    /// Which rules were entered and left, if that was wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    captures: Option<Vec<Value>>,
}

/// What rules the tokens enter and leave.
struct Told<'s> {
    constraint: &'s Constraint,
    captures: Captures,
    events: Vec<Value>,
}

impl Told<'_> {
    fn tell(&mut self, events: &[CaptureEvent], n_tokens: usize) {
        let language = self.constraint.language();
        self.events.extend(events.iter().map(|event| tree::event_at(language, event, n_tokens)));
    }
}

/// Reads the tokens under `ids`.
pub fn answer(subject: &mut Subject, question: &Question<'_>) -> Result<Replayed> {
    let Subject { constraint, matcher, .. } = subject;
    let ids = question.tokens("ids")?;
    let size = constraint.vocabulary().len();
    if let Some((at, id)) = ids.iter().enumerate().find(|(_, id)| id.index() >= size) {
        bail!("ids[{at}]: the vocabulary has {size} tokens, and no token {}", id.0);
    }
    let mut replayed = Replayed::default();
    let told = !question.wants(&["captures"])?.is_empty();
    let told = told.then(|| Captures::new(constraint.language().clone())).transpose()?;
    let mut told = told.map(|captures| Told { constraint, captures, events: Vec::new() });
    let mut row = vec![0; constraint.mask_words()];
    for (at, &id) in ids.iter().enumerate() {
        let start = ThreadTime::now();
        matcher.mask_into(&mut row).with_context(|| format!("the mask before ids[{at}]"))?;
        replayed.mask_us.push(us(start));
        let allowed = get_bit(&row, id.index());
        let start = ThreadTime::now();
        match matcher.advance(id) {
            Ok(()) if allowed => replayed.advance_us.push(us(start)),
            Err(MatchError::Refused(_)) if !allowed => {
                replayed.rejected_at = Some(at);
                break;
            }
            Ok(()) => bail!("ids[{at}]: the token was read though its mask lacks it; please report this"),
            Err(error) => return Err(error).with_context(|| format!("ids[{at}]")),
        }
        replayed.steps += 1;
        // EOS is no part of the text.
        if let Some(told) = told.as_mut().filter(|_| !matcher.has_ended()) {
            let events = told.captures.read_token(constraint, id)?;
            told.tell(&events, replayed.steps);
        }
    }
    replayed.sentence = replayed.rejected_at.is_none() && matcher.is_sentence();
    if let Some(mut told) = told {
        let rest = if replayed.sentence { told.captures.finish()? } else { None };
        told.tell(&rest.unwrap_or_default(), replayed.steps);
        replayed.captures = Some(told.events);
    }
    Ok(replayed)
}
