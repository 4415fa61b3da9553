//! Measures how the cost of a step grows with the length of the text.

use std::collections::BTreeMap;

use anygram::{GrammarFormat, Vocabulary};
use anyhow::{Result, anyhow};
use indicatif::ProgressBar;
use serde::Serialize;

use super::engine::{Engine, Maker};
use super::workload::Growing;
use crate::measure::{quantile, timed};

/// Lengths at which steps are measured.
pub const LENGTHS: [usize; 13] = [10, 20, 40, 80, 160, 320, 640, 1_000, 1_280, 2_000, 2_560, 5_000, 10_000];
/// So many steps up to such a length. Their third quartile is told: where cheap and dear steps alternate,
/// that is a dear one.
const WINDOW: usize = 16;
/// Tables are warm from a text of this length.
const WARM: usize = 40;

/// The steps of one engine on one text.
#[derive(Serialize)]
pub struct Curve {
    pub text: String,
    pub engine: String,
    /// Whether the text was read before by the same tables: an engine that remembers looks steps up.
    pub is_again: bool,
    pub points: BTreeMap<usize, Point>,
    /// Why it went no further.
    pub stopped: Option<String>,
}

/// Microseconds: third quartiles.
#[derive(Clone, Copy, Serialize)]
pub struct Point {
    pub mask: f64,
    pub advance: f64,
    pub both: f64,
}

/// When to stop an engine that is compared with.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// The milliseconds of one step.
    pub step_ms: f64,
    /// The seconds of a text.
    pub seconds: f64,
}

/// The tokens of a text, a token a character.
pub fn tokens(growing: &Growing, longest: usize, vocabulary: &Vocabulary) -> Result<Vec<u32>> {
    let text = (growing.text)(growing.longest.min(longest));
    let mut single: BTreeMap<char, u32> = BTreeMap::new();
    let token = |c: char| -> Result<u32> {
        if let Some(&token) = single.get(&c) {
            return Ok(token);
        }
        let [token] = vocabulary.encode(c.to_string())?[..] else {
            return Err(anyhow!("`{c}` is not one token"));
        };
        single.insert(c, token.0);
        Ok(token.0)
    };
    text.chars().map(token).collect()
}

/// The text for the first time and, for ours, again: a peer remembers nothing of a text. `bounds` is none for
/// ours, which has to do it all.
pub fn curves(
    growing: &Growing,
    maker: &Maker,
    text: &[u32],
    vocabulary: &Vocabulary,
    bounds: Option<Bounds>,
    bar: &ProgressBar,
) -> Result<Vec<Curve>> {
    let mut engine = match (maker.make)(GrammarFormat::Lark, growing.grammar) {
        Ok(engine) => engine,
        Err(error) => return Ok(vec![curve(growing, maker, false, BTreeMap::new(), Some(error))]),
    };
    // A text of its own, so that the first curve is not of the first masks of their kind.
    let short = tokens(growing, WARM, vocabulary)?;
    grow(&mut *engine, &short, bounds, bar);
    let mut curves = Vec::new();
    for is_again in [false, true] {
        let (points, stopped) = grow(&mut *engine, text, bounds, bar);
        let is_last = stopped.is_some() || bounds.is_some();
        curves.push(curve(growing, maker, is_again, points, stopped));
        if is_last {
            break;
        }
    }
    Ok(curves)
}

fn curve(
    growing: &Growing,
    maker: &Maker,
    is_again: bool,
    points: BTreeMap<usize, Point>,
    stopped: Option<String>,
) -> Curve {
    Curve { text: growing.name.into(), engine: maker.name.into(), is_again, points, stopped }
}

/// The points of one text, and why it was not read to the end.
fn grow(
    engine: &mut dyn Engine,
    text: &[u32],
    bounds: Option<Bounds>,
    bar: &ProgressBar,
) -> (BTreeMap<usize, Point>, Option<String>) {
    engine.begin();
    let (mut points, mut spent) = (BTreeMap::new(), 0.0);
    let mut window: Vec<[f64; 2]> = Vec::new();
    for (at, &token) in text.iter().enumerate() {
        bar.inc(1);
        // Short of a length that is asked for, or of the end: a text may be a little shorter than that.
        let next = LENGTHS.into_iter().find(|&length| at < length).unwrap_or(usize::MAX);
        let is_measured = at + WINDOW >= next.min(text.len());
        let mut mask = 0.0;
        if is_measured {
            let (masked, time) = timed(|| engine.mask());
            mask = time;
            if let Err(message) = masked {
                return (points, Some(format!("mask {at}: {message}")));
            }
            if !engine.allows(token) {
                return (points, Some(format!("token {at} is not in the mask")));
            }
        }
        let (advanced, advance) = timed(|| engine.advance(token));
        match advanced {
            Ok(true) => {}
            Ok(false) => return (points, Some(format!("token {at} is refused"))),
            Err(message) => return (points, Some(format!("token {at}: {message}"))),
        }
        spent += mask + advance;
        if is_measured {
            window.push([mask, advance]);
        }
        if is_measured && (at + 1 == next || at + 1 == text.len()) {
            let of = |get: fn(&[f64; 2]) -> f64| quantile(&window.iter().map(get).collect::<Vec<_>>(), 0.75);
            let point = Point {
                mask: of(|step| step[0]),
                advance: of(|step| step[1]),
                both: of(|step| step[0] + step[1]),
            };
            points.insert(if next - at <= WINDOW { next } else { at + 1 }, point);
            window.clear();
        }
        let Some(bounds) = bounds else { continue };
        if mask + advance > bounds.step_ms * 1e3 {
            return (points, Some(format!("token {at} took over {} ms", bounds.step_ms)));
        }
        if spent > bounds.seconds * 1e6 {
            return (points, Some(format!("{} s were used up at token {at}", bounds.seconds)));
        }
    }
    let stopped = (!engine.is_sentence()).then(|| "the text is no sentence".to_owned());
    (points, stopped)
}
