//! The laws that every recognizer must satisfy, as functions for unit tests, random tests and fuzzers. Each
//! says what is wrong, or `Ok`.

use anygram_bits::work::Work;
use anygram_grammar::ir::TerminalId;

use crate::{Edge, Recognizer, RecognizerError, Relation, StateId};

/// A terminal is viable iff the state can be extended by it.
pub fn viable_iff_extends(engine: &mut dyn Recognizer, state: StateId) -> Result<(), String> {
    for terminal in 0..engine.cfg().n_terminals {
        let viable = engine.viable(state).contains(terminal);
        let edge = Edge { from: state, terminal: Some(TerminalId::new(terminal)) };
        let extends = engine.extend(&[edge]).map_err(|error| error.to_string())?.is_some();
        if viable != extends {
            return Err(format!(
                "state {}: terminal {terminal} viable: {viable}, extends: {extends}",
                state.0
            ));
        }
    }
    Ok(())
}

/// A sentence lacks nothing, and only a sentence does; a viable state lacks a finite number.
pub fn minimum_is_zero_iff_sentence(engine: &dyn Recognizer, state: StateId) -> Result<(), String> {
    let (minimum, is_sentence) = (engine.minimum_remaining(state), engine.is_sentence(state));
    if (minimum == 0) != is_sentence || minimum == u32::MAX {
        return Err(format!("state {}: minimum {minimum}, sentence: {is_sentence}", state.0));
    }
    Ok(())
}

/// With an automaton of one state that reads everything, every viable state can be finished; with one that
/// reads nothing, only sentences.
pub fn automata_of_all_and_of_nothing(engine: &dyn Recognizer, state: StateId) -> Result<(), String> {
    let cfg = engine.cfg();
    let relation = |steps: &[_]| {
        Relation::new(cfg, 1, steps.iter().copied(), &mut Work::unbounded())
            .map_err(|stopped| stopped.to_string())
    };
    let steps: Vec<_> = (0..cfg.n_terminals).map(|terminal| (0, terminal, 0)).collect();
    let (all, nothing) = (relation(&steps)?, relation(&[])?);
    let (all, nothing) = (engine.can_finish(state, 0, &all), engine.can_finish(state, 0, &nothing));
    if !all || nothing != engine.is_sentence(state) {
        return Err(format!("state {}: finishes with all: {all}, with nothing: {nothing}", state.0));
    }
    Ok(())
}

/// Carrying a state over without reading changes nothing that can be observed.
pub fn carrying_over_is_the_identity(engine: &mut dyn Recognizer, state: StateId) -> Result<(), String> {
    let carried =
        engine.extend(&[Edge { from: state, terminal: None }]).map_err(|error| error.to_string())?;
    let Some(carried) = carried else { return Err(format!("state {} is lost when carried over", state.0)) };
    same(engine, state, carried)
}

/// A point reached by several edges reads the union of what each alone reads, whatever their order and
/// repetition.
pub fn a_merge_is_a_union(engine: &mut dyn Recognizer, edges: &[Edge]) -> Result<(), String> {
    let text = |error: RecognizerError| error.to_string();
    let merged = engine.extend(edges).map_err(text)?;
    let mut reversed: Vec<Edge> = edges.iter().rev().copied().collect();
    reversed.extend_from_slice(edges);
    let again = engine.extend(&reversed).map_err(text)?;
    let parts: Vec<StateId> = edges
        .iter()
        .map(|&edge| engine.extend(&[edge]))
        .collect::<Result<Vec<_>, _>>()
        .map_err(text)?
        .into_iter()
        .flatten()
        .collect();
    let (Some(merged), Some(again)) = (merged, again) else {
        return if parts.is_empty() { Ok(()) } else { Err("a merge of viable edges is not viable".into()) };
    };
    same(engine, merged, again)?;
    let mut viable = anygram_bits::BitSet::new(engine.cfg().n_terminals);
    let mut is_sentence = false;
    for &part in &parts {
        viable.union_with(engine.viable(part));
        is_sentence |= engine.is_sentence(part);
    }
    if *engine.viable(merged) != viable || engine.is_sentence(merged) != is_sentence {
        return Err(format!("the merge of {edges:?} is not the union of its parts"));
    }
    Ok(())
}

fn same(engine: &dyn Recognizer, a: StateId, b: StateId) -> Result<(), String> {
    let observe =
        |state| (engine.viable(state).clone(), engine.is_sentence(state), engine.minimum_remaining(state));
    if observe(a) != observe(b) {
        return Err(format!("states {} and {} differ: {:?} and {:?}", a.0, b.0, observe(a), observe(b)));
    }
    Ok(())
}
