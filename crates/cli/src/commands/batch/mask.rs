//! Questions about masks.

use anygram::{Constraint, MatchError, Matcher, TokenId, TokenMask};
use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Serialize;

use super::Question;
use super::shown::{Show, Shown};
use super::subject::Subject;
use crate::decoder::{Decoder, Stop};

/// More than any output takes.
pub const LARGEST_BUDGET: u32 = 1 << 30;

/// What was wanted. What was not is left out.
#[derive(Serialize, Default)]
pub struct Answers {
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<Vec<usize>>,
    #[serde(flatten)]
    shown: Option<Shown>,
    eos: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum: Option<Option<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forced: Option<Forced>,
    /// How many tokens may follow each beginning of the text that ends with a character; null where no tokens
    /// spell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Vec<(usize, Option<usize>)>>,
}

#[derive(Serialize)]
struct Forced {
    /// Bytes that are no characters are replaced.
    text: String,
    bytes: String,
    tokens: Vec<u32>,
}

pub fn answer(subject: &mut Subject, question: &Question<'_>) -> Result<Answers> {
    let Subject { constraint, matcher, device, .. } = subject;
    let budget = question.number("budget")?;
    let wants = question.wants(&["allowed", "minimum", "forced", "counts"])?;
    let show = Show::new(question)?;
    let is_wanted = |name: &str| wants.iter().any(|want| want == name);
    ensure!(
        question.get("text").is_none() || question.get("tokens").is_none(),
        "\"text\" and \"tokens\" do not go together: both say what stands before the mask"
    );
    if let Some(device) = device
        && budget.is_none()
        && question.get("text").is_none()
        && wants.iter().all(|want| want == "allowed")
    {
        let mask = plain_mask(constraint, device, question);
        let eos = device.is_sentence(0);
        device.reset(0);
        return Ok(listed(constraint, show.as_ref(), &mask?, eos));
    }
    let counts = is_wanted("counts").then(|| counts(constraint, matcher, question)).transpose()?;
    if counts.is_some() && wants.len() == 1 {
        // They say themselves how far the text is viable.
        let eos = advance(matcher, question).is_ok() && matcher.is_sentence();
        return Ok(Answers { counts, eos, ..Answers::default() });
    }
    advance(matcher, question)?;
    let mut answers = if wants.is_empty() || is_wanted("allowed") {
        let mask = match budget {
            None => matcher.mask()?,
            Some(budget) => matcher.mask_with_budget(budget)?,
        };
        listed(constraint, show.as_ref(), &mask, matcher.is_sentence())
    } else {
        Answers { eos: matcher.is_sentence(), ..Answers::default() }
    };
    answers.counts = counts;
    answers.minimum = is_wanted("minimum").then(|| matcher.minimum_tokens(LARGEST_BUDGET)).transpose()?;
    answers.forced = is_wanted("forced").then(|| matcher.forced()).transpose()?.map(|forced| Forced {
        text: String::from_utf8_lossy(&forced.bytes).into_owned(),
        bytes: forced.bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        tokens: forced.tokens.iter().map(|token| token.0).collect(),
    });
    Ok(answers)
}

/// Appends what stands before the mask.
fn advance(matcher: &mut Matcher, question: &Question<'_>) -> Result<()> {
    if question.get("text").is_some() {
        return match matcher.advance_text(question.string("text")?.as_bytes()) {
            Ok(_) => Ok(()),
            Err(MatchError::Refused(refusal)) => bail!("the text is not viable: {refusal}"),
            Err(error) => Err(error).context("the text"),
        };
    }
    for (at, token) in question.tokens("tokens")?.into_iter().enumerate() {
        matcher.advance(token).map_err(|error| match error {
            MatchError::Refused(_) => anyhow!("tokens[{at}]: not viable: {error}"),
            error => anyhow!(error).context(format!("tokens[{at}]")),
        })?;
    }
    Ok(())
}

/// A mask as it is answered: all of it, or what of it is to be shown.
fn listed(constraint: &Constraint, show: Option<&Show>, mask: &TokenMask, eos: bool) -> Answers {
    let vocabulary = constraint.vocabulary();
    let allowed = mask.iter().filter(|token| !vocabulary.eos().contains(token));
    match show {
        None => Answers { allowed: Some(allowed.map(TokenId::index).collect()), eos, ..Answers::default() },
        Some(show) => Answers { shown: Some(show.of(allowed, vocabulary)), eos, ..Answers::default() },
    }
}

/// How many tokens may follow, from the empty beginning of the text on, as far as it is viable.
fn counts(
    constraint: &Constraint,
    matcher: &mut Matcher,
    question: &Question<'_>,
) -> Result<Vec<(usize, Option<usize>)>> {
    let text = question.string("text").context("\"counts\" are about the beginnings of a text")?;
    let is_eos = |token: &TokenId| constraint.vocabulary().eos().contains(token);
    let count = |matcher: &mut Matcher| -> Result<usize> {
        Ok(matcher.mask()?.iter().filter(|token| !is_eos(token)).count())
    };
    let mut counts = vec![(0, Some(count(matcher)?))];
    // Whether the matcher has read all characters before this one.
    let mut is_current = true;
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        let advanced = if is_current {
            matcher.advance_text(&text.as_bytes()[at..end])
        } else {
            matcher.reset();
            matcher.advance_text(&text.as_bytes()[..end])
        };
        match advanced {
            Ok(_) => counts.push((end, Some(count(matcher)?))),
            Err(MatchError::Refused(_)) => break,
            // No token spells the character alone, but some may spell it and its neighbours.
            Err(MatchError::Encode { .. }) => counts.push((end, None)),
            Err(error) => return Err(error.into()),
        }
        is_current = counts[counts.len() - 1].1.is_some();
    }
    matcher.reset();
    Ok(counts)
}

/// A mask without a budget, by the device.
fn plain_mask(constraint: &Constraint, device: &mut Decoder, question: &Question<'_>) -> Result<TokenMask> {
    for (at, token) in question.tokens("tokens")?.into_iter().enumerate() {
        device.advance(0, token).map_err(|stop| match stop {
            Stop::Refused(error) => anyhow!("tokens[{at}]: not viable: {error}"),
            Stop::Error(error) => anyhow!("tokens[{at}]: {error}"),
        })?;
    }
    let mut words = vec![0; device.mask_words()];
    device.masks_into(1, &mut words).remove(0)?;
    Ok(TokenMask::from_words(words, constraint.vocabulary().len()))
}
