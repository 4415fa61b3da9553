//! The method `intersection` on the same random canvases: against brute force, against the exact engine on
//! gaps, and its ways to decide against each other.

use std::cell::Cell;
use std::sync::Arc;

use anygram_any_order::{Canvas, End, Slot, Solver};
use anygram_decoding::{Complete, Intersected, Intersection, IntersectionBy, IntersectionOptions};
use anygram_grammar::ir::LexerMode;
use anygram_left_to_right::{Constraint, Engine, ErrorKind, Language, LanguageOptions, Limits};
use anygram_vocab::{TokenId, Vocabulary};

use crate::drawn::{Case, MODES, MOST, are_few, seeds, shows};

const WAYS: [IntersectionBy; 4] =
    [IntersectionBy::MinimalDfa, IntersectionBy::Dfa, IntersectionBy::Nfa, IntersectionBy::Earley];

fn for_each_case(check: impl Fn(&Case, &mut Intersection, &mut Solver) -> Result<(), String>) {
    let mut failures = Vec::new();
    for seed in seeds() {
        for mode in MODES {
            let case = Case::new(seed, mode);
            let limits = Limits { canvas_steps: 600_000, ..Limits::default() };
            let constraint = match case.constraint(Engine::Earley, limits) {
                Ok(Some(constraint)) => constraint,
                Ok(None) => continue,
                Err(message) => panic!("seed {seed}: {message}"),
            };
            let mut engine = Intersection::new(&constraint).unwrap();
            let mut solver = Solver::new(&constraint).unwrap();
            if let Err(message) = check(&case, &mut engine, &mut solver) {
                failures.push(format!("seed {seed}, {mode:?}: {message}\n{}\n{:?}", case.random, case.vocab));
            }
        }
    }
    let n = failures.len();
    assert!(failures.is_empty(), "{n} failures; the first:\n{}", failures[..n.min(2)].join("\n"));
}

/// Each hole a gap.
fn gapped(canvas: &Canvas) -> Canvas {
    let gap = |&slot: &Slot| if slot == Slot::Hole { Slot::Gap } else { slot };
    Canvas::new(canvas.slots().iter().map(gap).collect(), canvas.end())
}

fn ask(engine: &mut Intersection, canvas: &Canvas, by: IntersectionBy) -> Result<Intersected, String> {
    let options =
        IntersectionOptions { by, complete: Complete::WhereItProves, ..IntersectionOptions::default() };
    engine.completable(canvas, &options).map_err(|error| error.to_string())
}

#[test]
fn gaps_are_answered_as_by_brute_force_and_exactly() {
    let counts: [Cell<usize>; 4] = Default::default();
    let count = |at: usize| counts[at].set(counts[at].get() + 1);
    for_each_case(|case, engine, solver| {
        let is_exact_mode = case.random.mode != LexerMode::Contextual;
        for canvas in case.canvases.iter().map(gapped) {
            let exact = solver.completable(&canvas).map_err(|error| error.to_string())?.decided();
            let known = case.brute(&canvas, MOST).map(|(answers, _)| answers.completable);
            for by in WAYS {
                let said = ask(engine, &canvas, by)?;
                let failed = |what: &str| {
                    Err(format!(
                        "{canvas:?} by {by:?}: {what}: {said:?}; exactly {exact:?}, by brute force {known:?}"
                    ))
                };
                match said.verdict.decision.decided() {
                    Some(false) if exact == Some(true) || known == Some(true) => return failed("a wrong no"),
                    Some(false) if !said.verdict.proven => return failed("a no is proven"),
                    Some(true) if said.verdict.proven && exact == Some(false) => {
                        return failed("a wrong proof");
                    }
                    Some(answer) => {
                        let counts_all = !matches!(canvas.end(), End::Prefix { remaining: Some(_) });
                        if is_exact_mode && counts_all && exact.is_some_and(|exact| exact != answer) {
                            return failed("not what is exact");
                        }
                        if is_exact_mode && counts_all && answer && !said.verdict.proven {
                            return failed("a completion was not drawn");
                        }
                    }
                    None if is_exact_mode => return failed("not decided"),
                    None => count(2),
                }
                if let Some(witness) = said.verdict.witness() {
                    shows(case, &canvas, witness)
                        .map_err(|error| format!("{canvas:?} by {by:?}: {error}"))?;
                }
                count(usize::from(said.verdict.decision.decided() == Some(true)));
                count(3);
            }
        }
        Ok(())
    });
    let [no, yes, open, asked] = counts.map(|count| count.get());
    println!("{asked} asked: {yes} yes, {} no, {open} unknown", no - open);
    assert!(are_few() || yes > 0 && no > open);
}

#[test]
fn its_yes_on_holes_is_what_the_exact_engine_may_refute() {
    let counts: [Cell<usize>; 3] = Default::default();
    let count = |at: usize| counts[at].set(counts[at].get() + 1);
    for_each_case(|case, engine, solver| {
        for canvas in case.canvases.iter().filter(|canvas| canvas.holes().next().is_some()) {
            let exact = solver.completable(canvas).map_err(|error| error.to_string())?.decided();
            let all: Vec<_> = WAYS.iter().map(|&by| ask(engine, canvas, by)).collect::<Result<_, _>>()?;
            if all.iter().any(|said| {
                said.verdict.decision.decided() != all[0].verdict.decision.decided()
                    || said.verdict.decision.decided().is_none()
            }) {
                return Err(format!("{canvas:?}: they say {all:?}"));
            }
            if all[0].verdict.proven == (all[0].verdict.decision.decided() == Some(true)) {
                return Err(format!("{canvas:?}: only a no is proven: {:?}", all[0]));
            }
            match (all[0].verdict.decision.decided(), exact) {
                (Some(false), Some(true)) => return Err(format!("{canvas:?}: a wrong no")),
                (Some(false), _) => count(0),
                (Some(true), Some(false)) => count(2),
                (Some(true), _) => count(1),
                (None, _) => {}
            }
        }
        Ok(())
    });
    let [no, kept, refuted] = counts.map(|count| count.get());
    let share = 100.0 * refuted as f64 / (kept + refuted).max(1) as f64;
    println!(
        "canvases with holes: {no} no, {} yes, {refuted} of them refuted ({share:.1} %)",
        kept + refuted
    );
}

#[test]
fn completions_depend_on_the_seed_alone() {
    let n_drawn = Cell::new(0);
    for_each_case(|case, engine, _| {
        for canvas in case.canvases.iter().map(gapped) {
            for seed in [0, 7] {
                let options = IntersectionOptions {
                    complete: Complete::Always,
                    seed,
                    ..IntersectionOptions::default()
                };
                let warm = engine.completable(&canvas, &options).map_err(|error| error.to_string())?;
                let fresh = IntersectionOptions { memoize: false, ..options };
                let mut other = Intersection::new(engine.constraint()).map_err(|error| error.to_string())?;
                let cold = other.completable(&canvas, &fresh).map_err(|error| error.to_string())?;
                if (&warm.infilling, warm.verdict.decision.decided())
                    != (&cold.infilling, cold.verdict.decision.decided())
                {
                    return Err(format!("{canvas:?}, seed {seed}: {warm:?} and {cold:?}"));
                }
                n_drawn.set(n_drawn.get() + usize::from(warm.infilling.is_some()));
            }
        }
        Ok(())
    });
    println!("{} completions", n_drawn.get());
    assert!(are_few() || n_drawn.get() > 0);
}

#[test]
fn at_a_limit_it_is_unknown() {
    let n_unknown = Cell::new(0);
    for_each_case(|case, engine, _| {
        for canvas in &case.canvases {
            for by in WAYS {
                let right = ask(engine, canvas, by)?.verdict.decision.decided();
                for steps in [0, 10, 100, 1_000] {
                    let options =
                        IntersectionOptions { by, steps: Some(steps), ..IntersectionOptions::default() };
                    let said = engine.completable(canvas, &options).map_err(|error| error.to_string())?;
                    match said.verdict.decision.decided() {
                        None => n_unknown.set(n_unknown.get() + 1),
                        answer if answer == right || right.is_none() => {}
                        _ => {
                            return Err(format!(
                                "{canvas:?} by {by:?} in {steps} steps: {said:?}, not {right:?}"
                            ));
                        }
                    }
                }
                // Without a draw there is no proof; the nondeterministic automaton stands in for a large one.
                let none =
                    IntersectionOptions { by, resamples: 0, dfa_states: 0, ..IntersectionOptions::default() };
                let said = engine.completable(canvas, &none).map_err(|error| error.to_string())?;
                if said.verdict.decision.decided() == Some(false) && right == Some(true) {
                    return Err(format!("{canvas:?} by {by:?} without draws: {said:?}"));
                }
            }
        }
        Ok(())
    });
    assert!(are_few() || n_unknown.get() > 0, "the limits were too generous to show anything");
}

#[test]
fn what_is_kept_together_is_completable() {
    for_each_case(|case, engine, _| {
        for canvas in &case.canvases {
            let holes: Vec<usize> = canvas.holes().collect();
            let options = IntersectionOptions { complete: Complete::Never, ..IntersectionOptions::default() };
            for token in 0..case.vocab.len() as u32 {
                let proposals: Vec<_> = holes.iter().map(|&hole| (hole, TokenId(token))).collect();
                let subset =
                    engine.compatible(canvas, &proposals, &options).map_err(|error| error.to_string())?;
                let mut said = |n: usize| {
                    let mut slots = canvas.slots().to_vec();
                    proposals[..n].iter().for_each(|&(hole, token)| slots[hole] = Slot::Fixed(token));
                    let canvas = Canvas::new(slots, canvas.end());
                    engine.completable(&canvas, &options).map_err(|error| error.to_string())
                };
                if said(subset.kept)?.verdict.decision.decided() != subset.decision.decided() {
                    return Err(format!("{canvas:?}, {proposals:?}: {subset:?}"));
                }
                // The superset refuses nothing that is completable.
                if subset.kept < proposals.len()
                    && said(proposals.len())?.verdict.decision.decided() == Some(true)
                {
                    return Err(format!("{canvas:?}, {proposals:?}: all can be kept: {subset:?}"));
                }
            }
        }
        Ok(())
    });
}

/// It searches all states of the lexer, and schemas have terminals whose states are made as texts need them;
/// nor does it know what was written before.
#[test]
fn schemas_are_refused() {
    for (schema, remembers) in [(r#"{"type":"string","maxLength":3}"#, false), ("{}", true)] {
        let grammar = anygram_json_schema::grammar(schema, &anygram_json_schema::Options::default()).unwrap();
        assert_eq!(grammar.remembers(), remembers, "{schema}");
        let language = Arc::new(Language::new(grammar, &LanguageOptions::default()).unwrap());
        let constraint = Constraint::new(language, Vocabulary::builtin()).unwrap();
        assert_eq!(Intersection::new(&constraint).err().unwrap().kind(), ErrorKind::Unsupported);
    }
}
