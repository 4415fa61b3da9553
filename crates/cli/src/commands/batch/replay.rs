//! Teacher-forced decoding of one text, step by step.

use anygram::MatchError;
use anygram_left_to_right::mask::get_bit;
use anyhow::{Context, Result, bail};
use cpu_time::ThreadTime;
use serde::Serialize;

use super::subject::Subject;
use super::{Question, us};

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
                return Ok(replayed);
            }
            Ok(()) => bail!("ids[{at}]: the token was read though its mask lacks it; please report this"),
            Err(error) => return Err(error).with_context(|| format!("ids[{at}]")),
        }
        replayed.steps += 1;
    }
    replayed.sentence = matcher.is_sentence();
    Ok(replayed)
}
