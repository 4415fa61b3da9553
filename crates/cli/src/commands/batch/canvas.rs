//! Questions about canvases.

use anygram::{Answer, Canvas, End, Filling, Slot, Solver, TokenId, Witness, get_bit};
use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Question, Questions, abbreviated};

/// What was wanted. What was not is left out; what was not decided is null.
#[derive(Serialize, Default)]
pub struct Answers {
    #[serde(skip_serializing_if = "Option::is_none")]
    completable: Option<Option<bool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proven: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    admissible: Option<Option<Vec<Vec<usize>>>>,
    /// Where not all was decided: the tokens that are certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    admissible_at_least: Option<Vec<Vec<usize>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<Option<Vec<Value>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum: Option<Option<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compatible: Option<Vec<Option<bool>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

pub fn answer(questions: &mut Questions<'_>, question: &Question) -> Result<Answers> {
    let canvas = Canvas::new(slots(question)?, end(question)?);
    match question.get("method").map(|_| question.string("method")).transpose()?.as_deref() {
        None | Some("exact") => {}
        Some(other) => bail!("the method `{other}` is not there yet; leave \"method\" out for `exact`"),
    }
    let wants = match question.get("want") {
        None => vec!["completable".to_owned()],
        Some(value) => serde_json::from_str::<Vec<String>>(value.get())
            .map_err(|_| anyhow!("\"want\" is an array of strings, such as [\"completable\"]"))?,
    };
    for want in &wants {
        match &**want {
            "completable" | "witness" | "admissible" | "minimum" | "compatible" => {}
            "best" | "sample" => {
                bail!("\"{want}\" is not there yet; ask for completable, witness, admissible, minimum or compatible")
            }
            _ => bail!("unknown want \"{want}\"; known: completable, witness, admissible, minimum, compatible"),
        }
    }
    let proposals = if wants.iter().any(|want| want == "compatible") { proposals(question)? } else { Vec::new() };
    let solver = match &mut questions.solver {
        Some(solver) => solver,
        empty => empty.insert(Solver::new(questions.constraint)?),
    };
    let mut answers = Answers::default();
    for want in &wants {
        match &**want {
            "completable" => completable(solver, &canvas, &mut answers)?,
            "witness" => witness(solver, &canvas, &mut answers)?,
            "admissible" => admissible(solver, &canvas, &mut answers)?,
            "minimum" => match solver.minimum(&canvas)? {
                Ok(minimum) => answers.minimum = Some(minimum),
                Err(undecided) => (answers.minimum, answers.why) = (Some(None), Some(undecided.to_string())),
            },
            _ => answers.compatible = Some(solver.compatible(&canvas, &proposals)?),
        }
    }
    Ok(answers)
}

fn completable(solver: &mut Solver, canvas: &Canvas, answers: &mut Answers) -> Result<()> {
    let answer = solver.completable(canvas)?;
    answers.completable = Some(answer.decided());
    answers.proven = Some(answer.decided().is_some());
    if let Answer::Unknown(undecided) = answer {
        answers.why = Some(undecided.to_string());
    }
    Ok(())
}

fn witness(solver: &mut Solver, canvas: &Canvas, answers: &mut Answers) -> Result<()> {
    answers.witness = Some(match solver.completable(canvas)? {
        Answer::Yes(Witness { slots, .. }) => Some(slots.iter().map(filling).collect()),
        Answer::No => None,
        Answer::Unknown(undecided) => {
            answers.why = Some(undecided.to_string());
            None
        }
    });
    Ok(())
}

fn filling(filling: &Filling) -> Value {
    match filling {
        Filling::Token(token) => token.0.into(),
        Filling::Tokens(tokens) => tokens.iter().map(|token| token.0).collect::<Vec<_>>().into(),
    }
}

fn admissible(solver: &mut Solver, canvas: &Canvas, answers: &mut Answers) -> Result<()> {
    let admissible = solver.admissible(canvas)?;
    let size = solver.constraint().vocabulary().len();
    let list = |mask: &Vec<u32>| (0..size).filter(|&id| get_bit(mask, id)).collect();
    let lists = admissible.masks.iter().map(list).collect();
    match admissible.undecided.iter().flatten().next() {
        None => answers.admissible = Some(Some(lists)),
        Some(undecided) => {
            answers.admissible = Some(None);
            answers.admissible_at_least = Some(lists);
            answers.why = Some(undecided.to_string());
        }
    }
    Ok(())
}

fn slots(question: &Question) -> Result<Vec<Slot>> {
    let value = question
        .get("slots")
        .context("no array \"slots\": list a token id, null (a hole) or \"*\" (a gap) for each slot")?;
    let Ok(slots) = serde_json::from_str::<Vec<&RawValue>>(value.get()) else { bail!("\"slots\" is not an array") };
    let slot = |(at, slot): (usize, &&RawValue)| match slot.get() {
        "null" => Ok(Slot::Hole),
        "\"*\"" => Ok(Slot::Gap),
        other => match other.parse() {
            Ok(id) => Ok(Slot::Fixed(TokenId(id))),
            Err(_) => Err(anyhow!("slots[{at}]: {} is neither a token id nor null nor \"*\"", abbreviated(other))),
        },
    };
    slots.iter().enumerate().map(slot).collect()
}

fn end(question: &Question) -> Result<End> {
    let end = question.get("end").map(|_| question.string("end")).transpose()?;
    let remaining = question.get("remaining").map(|value| {
        value
            .get()
            .parse::<u32>()
            .map_err(|_| anyhow!("\"remaining\" is a number of tokens, not {}", abbreviated(value.get())))
    });
    match (end.as_deref(), remaining.transpose()?) {
        (None | Some("sentence"), None) => Ok(End::Sentence),
        (None | Some("sentence"), Some(_)) => {
            bail!("\"remaining\" is for \"end\": \"prefix\"; leave it out, or add holes")
        }
        (Some("prefix"), remaining) => Ok(End::Prefix { remaining }),
        (Some(other), _) => bail!("\"end\" is \"sentence\" or \"prefix\", not \"{other}\""),
    }
}

fn proposals(question: &Question) -> Result<Vec<(usize, TokenId)>> {
    let value = question.get("proposals").context("\"compatible\" needs \"proposals\": a list of [slot, token]")?;
    let pairs: Vec<(usize, u32)> = serde_json::from_str(value.get())
        .map_err(|_| anyhow!("\"proposals\" is a list of pairs [slot, token], such as [[3,17],[5,2]]"))?;
    ensure!(pairs.len() <= 1 << 20, "{} proposals are too many for one question", pairs.len());
    Ok(pairs.into_iter().map(|(slot, token)| (slot, TokenId(token))).collect())
}
