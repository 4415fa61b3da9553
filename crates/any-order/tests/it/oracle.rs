//! Random grammars and canvases: every lexer mode, engine and way to decide against brute force, and the laws
//! of canvases.
//!
//! `ANYGRAM_SEED=17` replays one seed and prints its case; `ANYGRAM_SEEDS=5000` sets how many are drawn
//! (default 25). A yes is checked by what shows it: the oracle reads the witness. A no is checked by all
//! assignments that brute force can try.

use std::sync::Arc;

use anygram_any_order::{Admissible, AdmissibleRows, By, Canvas, Decision, End, Slot, Solver};
use anygram_grammar::ir::LexerMode;
use anygram_left_to_right::tokens::get_bit;
use anygram_left_to_right::{Constraint, Engine, Language, LanguageOptions, Limits};
use anygram_testkit::generate::{EOS, RandomCase};
use anygram_testkit::random::Random;
use anygram_vocab::{SpecialIds, TokenId, Vocabulary};

use crate::drawn::{Case, MODES, MOST, are_few, seeds, shows};

#[path = "oracle/layers.rs"]
mod layers;

#[derive(Default)]
struct Tally {
    yes: usize,
    no: usize,
    undecided: [usize; 3],
    /// Of the other questions.
    open: usize,
    questions: [usize; 3],
}

fn for_each_canvas(
    check: impl Fn(&Case, &mut Solver, &Canvas, &mut Tally) -> Result<(), String>,
    by: By,
    engines: &[Engine],
) {
    let mut failures = Vec::new();
    let mut tally = Tally::default();
    for seed in seeds() {
        for mode in MODES {
            let case = Case::new(seed, mode);
            for &engine in engines {
                let limits = Limits { canvas_steps: 600_000, ..Limits::default() };
                let constraint = match case.constraint(engine, limits) {
                    Ok(Some(constraint)) => constraint,
                    Ok(None) => continue,
                    Err(message) => panic!("seed {seed}: {message}"),
                };
                let mut solver = Solver::new(&constraint).unwrap().by(by);
                for canvas in &case.canvases {
                    if let Err(message) = check(&case, &mut solver, canvas, &mut tally) {
                        failures.push(format!(
                            "seed {seed}, {mode:?}, {}, {canvas:?}: {message}\n{}\n{:?} {:?}",
                            engine.name(),
                            case.random,
                            case.vocab,
                            case.roles
                        ));
                    }
                }
            }
        }
    }
    println!(
        "{} yes, {} no; undecided {:?} of {:?} (scannerless, longest, contextual), {} others; {} failures",
        tally.yes,
        tally.no,
        tally.undecided,
        tally.questions,
        tally.open,
        failures.len()
    );
    assert!(
        failures.is_empty(),
        "{} failures; the first:\n{}",
        failures.len(),
        failures[..failures.len().min(2)].join("\n")
    );
    assert!(are_few() || tally.yes + tally.no > 0, "nothing was compared");
    if !are_few() && by == By::All {
        assert_eq!(tally.undecided[..2], [0, 0], "exact in scannerless and longest");
        assert!(tally.undecided[2] * 50 <= tally.questions[2], "too much is undecided");
    }
}

fn check(case: &Case, solver: &mut Solver, canvas: &Canvas, tally: &mut Tally) -> Result<(), String> {
    let mode = MODES.iter().position(|&mode| mode == case.random.mode).unwrap();
    tally.questions[mode] += 1;
    let answer = solver.completable(canvas).map_err(|error| error.to_string())?;
    let known = case.brute(canvas, MOST);
    match &answer {
        Decision::Yes(witness) => {
            tally.yes += 1;
            shows(case, canvas, witness)?;
        }
        Decision::No => {
            tally.no += 1;
            if known.as_ref().is_some_and(|(answers, _)| answers.completable) {
                return Err("not completable, though by brute force it is".to_owned());
            }
        }
        Decision::Unknown(_) => {
            tally.undecided[mode] += 1;
            return Ok(());
        }
    }
    let Some((known, longest)) = known else { return Ok(()) };
    let has_gaps = canvas.slots().contains(&Slot::Gap);
    let is_exact = !has_gaps && canvas.end() != (End::Prefix { remaining: None });
    if is_exact && answer.decided() != Some(known.completable) {
        return Err(format!("{answer:?}, by brute force {}", known.completable));
    }
    match solver.minimum(canvas).map_err(|error| error.to_string())?.known() {
        // With gaps that is a search among infinitely many texts.
        Err(_) => tally.open += usize::from(!has_gaps),
        Ok(minimum) => {
            let fits = match (minimum, known.minimum) {
                (None, least) => least.is_none(),
                (Some(_), None) => !is_exact,
                (Some(minimum), Some(least)) => {
                    // Whether a prefix is viable is known to brute force only as far as it looks.
                    let complete =
                        canvas.end() != (End::Prefix { remaining: None }) && (!has_gaps || least <= longest);
                    minimum <= least && (!complete || minimum == least)
                }
            };
            if !fits {
                return Err(format!("the fewest tokens are {minimum:?}, by brute force {:?}", known.minimum));
            }
        }
    }
    let admissible = solver.admissible(canvas).map_err(|error| error.to_string())?;
    for (at, hole) in canvas.holes().enumerate() {
        for token in 0..case.vocab.len() as u32 {
            let Some(own) = admissible.get(at, TokenId(token)).decided() else {
                tally.open += 1;
                break;
            };
            let by_force = known.admissible[at].contains(&token);
            if by_force && !own || is_exact && own && !by_force {
                return Err(format!(
                    "slot {hole}, token {token} is admissible: {own}, by brute force {by_force}"
                ));
            }
            // A token is admissible iff fixing it leaves the canvas completable.
            let mut fixed = canvas.clone();
            fixed.set(hole, TokenId(token)).map_err(|error| error.to_string())?;
            let fixed_answer = solver.completable(&fixed).map_err(|error| error.to_string())?;
            if let Decision::Yes(witness) = &fixed_answer {
                shows(case, &fixed, witness)?;
            }
            match fixed_answer.decided() {
                Some(completable) if completable != own => {
                    return Err(format!(
                        "slot {hole}, token {token} is admissible: {own}; fixed it is completable: \
                         {completable}"
                    ));
                }
                Some(_) => {}
                None => tally.open += 1,
            }
        }
    }
    on_demand(case, solver, canvas, &admissible)?;
    laws(case, solver, canvas, &admissible)
}

/// Rows on demand say what complete rows say, whenever they ask for these.
fn on_demand(
    case: &Case,
    solver: &mut Solver,
    canvas: &Canvas,
    admissible: &Admissible,
) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let mut random = Random::new(case.vocab.len() as u64 ^ canvas.slots().len() as u64);
    let tokens = || (0..case.vocab.len() as u32).map(TokenId);
    for refusals in [0, 1, 2, AdmissibleRows::REFUSALS] {
        let mut rows = solver.rows(canvas).map_err(|error| failed(&error))?.refusals(refusals);
        for hole in 0..canvas.holes().count() {
            let values: Vec<f32> = tokens().map(|_| random.below(8) as f32 / 2.0 - 4.0).collect();
            let is_decided = admissible.undecided[hole].is_none();
            let can_stand = |token: TokenId| admissible.masks[hole].contains(token);
            let best = tokens()
                .filter(|&token| can_stand(token))
                .max_by(|a, b| values[a.index()].total_cmp(&values[b.index()]).then(b.cmp(a)));
            let mut row = rows.row(solver, hole).map_err(|error| failed(&error))?;
            let own = row.best(&values).map_err(|error| failed(&error))?;
            if is_decided && own.undecided().is_none() && own != best.map_or(Decision::No, Decision::Yes) {
                return Err(format!("hole {hole}, {refusals} refusals: the best is {best:?}, not {own:?}"));
            }
            let drawn = row.sample(&values, random.bits()).map_err(|error| failed(&error))?;
            let is_one = match drawn {
                Decision::Yes(token) => can_stand(token),
                Decision::No => best.is_none(),
                Decision::Unknown(_) => true,
            };
            if is_decided && !is_one {
                return Err(format!("hole {hole}, {refusals} refusals: {drawn:?} was drawn"));
            }
            // What is known says nothing else, and what is asked neither.
            for token in tokens() {
                let before = rows.get(hole, token);
                let mut row = rows.row(solver, hole).map_err(|error| failed(&error))?;
                let asked = row.allows(token).map_err(|error| failed(&error))?.decided();
                let right = admissible.get(hole, token).decided();
                let differs = |one: Option<bool>| one.is_some() && right.is_some() && one != right;
                if differs(before) || differs(asked) || before.is_some() && before != asked {
                    return Err(format!(
                        "hole {hole}, {token:?}: {right:?} in complete rows, on demand {before:?}, {asked:?}"
                    ));
                }
            }
        }
        if canvas.slots().len() > 1 && rows.row(solver, canvas.slots().len()).is_ok() {
            return Err("a row of no hole".to_owned());
        }
    }
    Ok(())
}

/// What holds of all canvases.
fn laws(case: &Case, solver: &mut Solver, canvas: &Canvas, admissible: &Admissible) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let holes: Vec<usize> = canvas.holes().collect();
    // Filling never enlarges; what was cleared and set again is as before; what is known of another canvas
    // changes nothing.
    let mut fillings = Vec::new();
    for at in [0, holes.len().saturating_sub(1)].into_iter().filter(|_| holes.len() > 1) {
        let can_stand = |&token: &TokenId| admissible.get(at, token).is_yes();
        fillings.extend((0..case.vocab.len() as u32).map(TokenId).find(can_stand).map(|token| (at, token)));
    }
    // A limit may be hit by one and not by the other, for the other knows more.
    let differs = |one: &Admissible, other: &Admissible| {
        let decided = |at: usize| one.undecided[at].is_none() && other.undecided[at].is_none();
        (0..one.masks.len()).any(|at| decided(at) && one.masks[at] != other.masks[at])
    };
    for (filled, token) in fillings {
        let mut changed = canvas.clone();
        changed.set(holes[filled], token).map_err(|error| failed(&error))?;
        let after = solver.admissible(&changed).map_err(|error| failed(&error))?;
        let others = (0..holes.len()).filter(|&at| at != filled);
        for (mask, at) in after.masks.iter().zip(others) {
            if admissible.undecided[at].is_none() && !mask.is_subset(&admissible.masks[at]) {
                return Err(format!(
                    "filling slot {} with {token:?} enlarges the set of hole {at}",
                    holes[filled]
                ));
            }
        }
        let mut fresh = Solver::new(solver.constraint()).map_err(|error| failed(&error))?;
        if differs(&after, &fresh.admissible(&changed).map_err(|error| failed(&error))?) {
            return Err(format!("after {canvas:?} the answer to {changed:?} is another"));
        }
        changed.clear(holes[filled]).map_err(|error| failed(&error))?;
        let again = solver.admissible(&changed).map_err(|error| failed(&error))?;
        if &changed != canvas || differs(&again, admissible) {
            return Err("set and cleared, the answer differs".to_owned());
        }
    }
    // Fixed slots and one hole at the end: the mask.
    if let [hole] = holes[..]
        && hole + 1 == canvas.slots().len()
        && canvas.end() == (End::Prefix { remaining: None })
        && !canvas.slots().contains(&Slot::Gap)
        && admissible.undecided[0].is_none()
    {
        let mut matcher = solver.constraint().matcher().map_err(|error| failed(&error))?;
        let mut mask = vec![0; solver.constraint().mask_words()];
        let tokens = canvas.slots()[..hole].iter().filter_map(|slot| match slot {
            Slot::Fixed(token) => Some(*token),
            _ => None,
        });
        if tokens.into_iter().all(|token| matcher.advance(token).is_ok())
            && matcher.mask_into(&mut mask).is_err()
        {
            return Ok(());
        }
        for token in 0..case.vocab.len() {
            if get_bit(&mask, token) != admissible.masks[0].contains(TokenId::new(token)) {
                return Err(format!("token {token}: the mask from left to right differs"));
            }
        }
    }
    Ok(())
}

fn without_gaps(case: &Case, solver: &mut Solver, canvas: &Canvas, tally: &mut Tally) -> Result<(), String> {
    if canvas.slots().contains(&Slot::Gap) { Ok(()) } else { check(case, solver, canvas, tally) }
}

#[test]
fn canvases_are_those_of_brute_force() {
    for_each_canvas(check, By::All, &[Engine::Earley]);
}

#[test]
fn other_engines_say_the_same() {
    // The definition is too slow for searches that lead on and on.
    for_each_canvas(without_gaps, By::All, &[Engine::Reference, Engine::Valiant]);
}

#[test]
fn the_search_alone_is_right() {
    for_each_canvas(without_gaps, By::Search, &[Engine::Earley]);
}

#[test]
fn what_is_done_last_is_right() {
    for_each_canvas(check, By::Last, &[Engine::Earley]);
}

/// A text of this grammar has so many readings that a few hundred places of a search take millions of steps.
/// The parse of terminals takes thousands, and has its turn.
#[test]
fn a_short_search_leaves_steps_for_others() {
    let random = RandomCase::in_mode(147, LexerMode::Scannerless);
    let options = LanguageOptions {
        lexer: Some(random.mode),
        ties: random.ties,
        limits: Limits { canvas_steps: 2_500_000, ..Limits::default() },
        ..LanguageOptions::default()
    };
    let language = Arc::new(Language::new(random.grammar.clone(), &options).unwrap());
    let tokens: Vec<Vec<u8>> = random.vocab.iter().map(|token| token.clone().unwrap_or_default()).collect();
    let special = SpecialIds { eos: vec![EOS], ..SpecialIds::default() };
    let vocabulary = Vocabulary::from_tokens(tokens, special).unwrap();
    let mut solver = Solver::new(&Constraint::new(language, vocabulary).unwrap()).unwrap();
    let mut slots = [7, 4, 4].map(|token| Slot::Fixed(TokenId(token))).to_vec();
    slots.resize(9, Slot::Hole);
    assert!(solver.completable(&Canvas::new(slots, End::Sentence)).unwrap().is_yes());
}
