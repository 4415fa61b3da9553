//! Questions about canvases.

use anygram::{
    Assignment, Canvas, Decision, End, Filling, Floor, LogProbs, Lookahead, Method, Methods, SampleOptions,
    Slot, Solver, Tail, TokenId, TokenMask, Undecided, Vocabulary, Weigher, Witness,
};
use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::shown::{Show, Shown};
use super::subject::Subject;
use super::{Question, abbreviated};

/// What was wanted. What was not is left out; what was not decided is null.
#[derive(Serialize, Default)]
pub struct Answers {
    #[serde(skip_serializing_if = "Option::is_none")]
    completable: Option<Option<bool>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proven: Option<bool>,
    /// The tokens of each hole; of a row that was not wholly decided, null.
    #[serde(skip_serializing_if = "Option::is_none")]
    admissible: Option<Vec<Option<Row>>>,
    /// Where not all was decided: the tokens of each hole that are certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    admissible_at_least: Option<Vec<Row>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    witness: Option<Option<Vec<Value>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum: Option<Option<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compatible: Option<Vec<Option<bool>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<Option<BestAnswer>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<Option<Vec<Vec<u32>>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// The tokens of a hole, or what of them is to be shown.
#[derive(Serialize)]
#[serde(untagged)]
enum Row {
    Tokens(Vec<usize>),
    Shown(Shown),
}

#[derive(Serialize)]
struct BestAnswer {
    tokens: Vec<u32>,
    log_prob: f64,
    widened: bool,
}

/// What answers about canvases; made as it is needed, and warm from one question to the next.
#[derive(Default)]
pub struct Solvers {
    methods: Option<Methods>,
    weigher: Option<Weigher>,
}

const WANTS: [&str; 7] = ["completable", "witness", "admissible", "minimum", "compatible", "best", "sample"];

/// Tokens of all samples of one question.
const MOST_SAMPLED: usize = 1 << 26;

/// Fillings of one question.
const MOST_FILLINGS: usize = 1 << 16;

pub fn answer(subject: &mut Subject, question: &Question<'_>) -> Result<Answers> {
    let canvas = Canvas::new(slots(question)?, end(question)?);
    let method = method(question)?;
    let show = Show::new(question)?;
    let mut wants = question.wants(&WANTS)?;
    if question.get("want").is_none() {
        wants.push("completable".to_owned());
    }
    let is_wanted = |name: &str| wants.iter().any(|want| want == name);
    let proposals = if is_wanted("compatible") { proposals(question)? } else { Vec::new() };
    let weights = match log_probs(question)? {
        None if is_wanted("best") || is_wanted("sample") => {
            bail!(
                "\"best\" and \"sample\" need \"log_probs\": for each hole a list of [token, log-probability]"
            )
        }
        weights => weights,
    };
    let Solvers { methods, weigher } = &mut subject.solvers;
    let methods = match methods {
        Some(methods) => methods,
        empty => empty.insert(Methods::new(&subject.constraint)?),
    };
    let mut answers = Answers::default();
    if method != Method::Exact {
        by_method(methods, question, (&canvas, &proposals, weights.as_ref()), &wants, &mut answers)?;
        return Ok(answers);
    }
    let solver = methods.solver();
    if is_wanted("completable") || is_wanted("witness") {
        completable(solver, &canvas, (is_wanted("completable"), is_wanted("witness")), &mut answers)?;
    }
    for want in &wants {
        match &**want {
            "completable" | "witness" => {}
            "admissible" => {
                let vocabulary = subject.constraint.vocabulary();
                admissible(solver, &canvas, (show.as_ref(), vocabulary), &mut answers)?;
            }
            "minimum" => answers.minimum = Some(known(solver.minimum(&canvas)?, &mut answers)),
            "compatible" => {
                let kept = solver.compatible(&canvas, &proposals)?;
                answers.compatible = Some(kept.iter().map(Decision::decided).collect());
                answers.why =
                    kept.iter().find_map(Decision::undecided).map(Undecided::to_string).or(answers.why);
            }
            _ => {
                let Some(weights) = &weights else { continue };
                if weigher.is_none() {
                    *weigher = Some(Weigher::new(&subject.constraint)?);
                }
                let Some(weigher) = weigher else { continue };
                weigh(weigher, want, question, &canvas, weights, &mut answers)?;
            }
        }
    }
    Ok(answers)
}

/// The answers of a published method.
fn by_method(
    methods: &mut Methods,
    question: &Question,
    (canvas, proposals, weights): (&Canvas, &[(usize, TokenId)], Option<&LogProbs>),
    wants: &[String],
    answers: &mut Answers,
) -> Result<()> {
    let method = method(question)?;
    let is_wanted = |name: &str| wants.iter().any(|want| want == name);
    let known = ["completable", "witness", "compatible"];
    if let Some(want) = wants.iter().find(|want| !known.contains(&want.as_str())) {
        bail!(
            "the method `{}` answers completable, witness and compatible; ask `exact` for {want}",
            method.name()
        );
    }
    let lookahead = lookahead(question)?;
    if is_wanted("compatible") {
        let verdicts = methods.compatible(canvas, proposals, method, weights, lookahead)?;
        let decisions = || verdicts.iter().map(|verdict| &verdict.decision);
        answers.compatible = Some(decisions().map(Decision::decided).collect());
        answers.why = decisions().find_map(Decision::undecided).map(Undecided::to_string);
    }
    if !is_wanted("completable") && !is_wanted("witness") {
        return Ok(());
    }
    let verdict = methods.completable(canvas, method, weights, lookahead)?;
    if is_wanted("completable") {
        (answers.completable, answers.proven) = (Some(verdict.decision.decided()), Some(verdict.proven));
    }
    if is_wanted("witness") {
        answers.witness = Some(verdict.witness().map(|witness| witness.slots.iter().map(filling).collect()));
    }
    let why = verdict.decision.undecided().map(Undecided::to_string);
    answers.why = why.or(answers.why.take());
    Ok(())
}

fn weigh(
    weigher: &mut Weigher,
    want: &str,
    question: &Question,
    canvas: &Canvas,
    weights: &LogProbs,
    answers: &mut Answers,
) -> Result<()> {
    let tail = match question.get("tail").map(|_| question.string("tail")).transpose()?.as_deref() {
        None | Some("counted") => Tail::Counted,
        Some("free") => Tail::Free,
        Some(other) => bail!("\"tail\" is \"counted\" or \"free\", not \"{other}\""),
    };
    let ids = |assignment: Assignment| assignment.tokens.iter().map(|token| token.0).collect::<Vec<u32>>();
    if want == "best" {
        let best = known(weigher.best(canvas, weights, tail)?, answers);
        answers.best = Some(best.map(|best| {
            let (log_prob, widened) = (best.log_prob, best.widened);
            BestAnswer { tokens: ids(best), log_prob, widened }
        }));
        return Ok(());
    }
    let count = question.number("count")?.unwrap_or(1) as usize;
    ensure!(
        count.saturating_mul(canvas.slots().len()) <= MOST_SAMPLED,
        "{count} samples of {} slots are too many for one question",
        canvas.slots().len()
    );
    let options = SampleOptions { tail, seed: seed(question)?, count };
    let drawn = known(weigher.sample(canvas, weights, options)?, answers);
    answers.samples = Some(drawn.map(|drawn| drawn.into_iter().map(ids).collect()));
    Ok(())
}

/// What shows a yes; notes why an answer is not known.
fn known<T>(decision: Decision<T>, answers: &mut Answers) -> Option<T> {
    decision.known().unwrap_or_else(|undecided| {
        answers.why = Some(undecided.to_string());
        None
    })
}

fn method(question: &Question) -> Result<Method> {
    let Some(name) = question.get("method").map(|_| question.string("method")).transpose()? else {
        return Ok(Method::Exact);
    };
    let known = || Method::ALL.map(Method::name).join(", ");
    Method::from_name(&name)
        .ok_or_else(|| anyhow!("unknown method `{}`; known: {}", abbreviated(&name), known()))
}

fn lookahead(question: &Question) -> Result<Lookahead> {
    let fillings = question.number("fillings")?.map_or(Lookahead::FILLINGS, |fillings| fillings as usize);
    ensure!(
        fillings <= MOST_FILLINGS,
        "{fillings} fillings are too many for one question, at most {MOST_FILLINGS}"
    );
    let counts_room = match question.get("counts_room").map(RawValue::get) {
        None | Some("true") => true,
        Some("false") => false,
        Some(other) => bail!("\"counts_room\" is true or false, not {}", abbreviated(other)),
    };
    Ok(Lookahead { fillings, counts_room, seed: seed(question)? })
}

fn seed(question: &Question) -> Result<u64> {
    let Some(value) = question.get("seed") else { return Ok(0) };
    value.get().parse().map_err(|_| anyhow!("\"seed\" is {}, not a number", abbreviated(value.get())))
}

/// The rows of "log_probs": lists of pairs, or of a number for each token.
fn log_probs(question: &Question) -> Result<Option<LogProbs>> {
    let Some(value) = question.get("log_probs") else { return Ok(None) };
    let floor = match question.get("floor").map(RawValue::get) {
        None => Floor::BelowListed,
        Some("\"none\"") => Floor::Excluded,
        Some(number) => Floor::At(number.parse().map_err(|_| {
            anyhow!("\"floor\" is a log-probability or \"none\", not {}", abbreviated(number))
        })?),
    };
    if let Ok(rows) = serde_json::from_str::<Vec<Vec<(u32, f64)>>>(value.get()) {
        let row = |row: Vec<(u32, f64)>| row.into_iter().map(|(token, log)| (TokenId(token), log)).collect();
        let rows: Vec<Vec<(TokenId, f64)>> = rows.into_iter().map(row).collect();
        return Ok(Some(LogProbs::listed(&rows, floor)?));
    }
    let Ok(rows) = serde_json::from_str::<Vec<Vec<Option<f32>>>>(value.get()) else {
        bail!(
            "\"log_probs\" is for each hole a list of [token, log-probability], or of a number for each token"
        )
    };
    let size = rows.first().map_or(1, Vec::len);
    ensure!(rows.iter().all(|row| row.len() == size), "the rows of \"log_probs\" are of different lengths");
    let values: Vec<f32> = rows.iter().flatten().map(|value| value.unwrap_or(f32::NEG_INFINITY)).collect();
    Ok(Some(LogProbs::dense(values, size)?))
}

/// Whether the canvas can be completed, and how: asked once, so that both say the same.
fn completable(
    solver: &mut Solver,
    canvas: &Canvas,
    (is_wanted, is_witness_wanted): (bool, bool),
    answers: &mut Answers,
) -> Result<()> {
    let answer = solver.completable(canvas)?;
    if is_wanted {
        answers.completable = Some(answer.decided());
        answers.proven = Some(answer.decided().is_some());
    }
    let witness = known(answer, answers);
    if is_witness_wanted {
        answers.witness = Some(witness.map(|Witness { slots, .. }| slots.iter().map(filling).collect()));
    }
    Ok(())
}

fn filling(filling: &Filling) -> Value {
    match filling {
        Filling::Token(token) => token.0.into(),
        Filling::Tokens(tokens) => tokens.iter().map(|token| token.0).collect::<Vec<_>>().into(),
    }
}

fn admissible(
    solver: &mut Solver,
    canvas: &Canvas,
    (show, vocabulary): (Option<&Show>, &Vocabulary),
    answers: &mut Answers,
) -> Result<()> {
    let admissible = solver.admissible(canvas)?;
    let list = |mask: &TokenMask| match show {
        None => Row::Tokens(mask.iter().map(TokenId::index).collect()),
        Some(show) => Row::Shown(show.of(mask.iter(), vocabulary)),
    };
    let each = admissible.masks.iter().zip(&admissible.undecided);
    answers.admissible = Some(each.map(|(mask, why)| why.is_none().then(|| list(mask))).collect());
    if let Some(undecided) = admissible.undecided.iter().flatten().next() {
        answers.admissible_at_least = Some(admissible.masks.iter().map(list).collect());
        answers.why = Some(undecided.to_string());
    }
    Ok(())
}

fn slots(question: &Question) -> Result<Vec<Slot>> {
    let value = question
        .get("slots")
        .context("no array \"slots\": list a token id, null (a hole) or \"*\" (a gap) for each slot")?;
    let Ok(slots) = serde_json::from_str::<Vec<&RawValue>>(value.get()) else {
        bail!("\"slots\" is not an array")
    };
    let slot = |(at, slot): (usize, &&RawValue)| match slot.get() {
        "null" => Ok(Slot::Hole),
        "\"*\"" => Ok(Slot::Gap),
        other => match other.parse() {
            Ok(id) => Ok(Slot::Fixed(TokenId(id))),
            Err(_) => {
                Err(anyhow!("slots[{at}]: {} is neither a token id nor null nor \"*\"", abbreviated(other)))
            }
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
    let value =
        question.get("proposals").context("\"compatible\" needs \"proposals\": a list of [slot, token]")?;
    let pairs: Vec<(usize, u32)> = serde_json::from_str(value.get())
        .map_err(|_| anyhow!("\"proposals\" is a list of pairs [slot, token], such as [[3,17],[5,2]]"))?;
    ensure!(pairs.len() <= 1 << 20, "{} proposals are too many for one question", pairs.len());
    Ok(pairs.into_iter().map(|(slot, token)| (slot, TokenId(token))).collect())
}
