//! Terminals that are in each other's way: pairs that label the same piece, and those that never win one.
//!
//! What competes, and what is wanted, depends on the place in a text. The caller gives *contexts*, sets of
//! terminals that can come next somewhere; all that is found is true there. Cost: contexts × sets of
//! terminals that match the same piece, bounded.

use std::collections::BTreeMap;

use anygram_bits::{BitSet, CompactSet};
use anygram_grammar::ir::LexerMode;
use rustc_hash::FxHashSet;

use crate::lexicon::Lexicon;
use crate::union::State;
use crate::words::Words;

/// Contexts times sets that are looked at, and pairs that are kept.
const STEPS: usize = 3_000_000;
const PAIRS: usize = 5_000;

/// Two terminals of the same rank that match the same piece where both can come next, or one of them is
/// ignored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overlap {
    /// The one of the smaller number.
    pub first: usize,
    /// The other.
    pub second: usize,
    /// A shortest piece that both match.
    pub example: Vec<u8>,
}

/// A terminal that is no label of any of its pieces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loser {
    /// The terminal.
    pub terminal: usize,
    /// One that takes a piece from it.
    pub winner: usize,
    /// That piece, a shortest of the loser's.
    pub example: Vec<u8>,
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Overlaps {
    /// By the numbers of the terminals.
    pub pairs: Vec<Overlap>,
    /// By the numbers of the terminals.
    pub losers: Vec<Loser>,
    /// Whether a bound was hit, so that there may be more pairs; then no losers are named.
    pub is_cut: bool,
}

/// The terminals that are in each other's way in some of `contexts`.
pub fn overlaps(lexicon: &Lexicon, words: &Words<'_>, contexts: &[BitSet]) -> Overlaps {
    let mut is_cut = words.is_cut() || words.states().len() + 1 < lexicon.union.n_states();
    let mut distinct: FxHashSet<&CompactSet> = FxHashSet::default();
    let accepting = words.states().iter().filter(|&&state| !lexicon.union.accepts(state).is_empty());
    let states: Vec<State> =
        accepting.copied().filter(|&state| distinct.insert(lexicon.union.accepts(state))).collect();
    let n = lexicon.n_terminals();
    let (mut wins, mut comes) = (BitSet::new(n), BitSet::new(n));
    // States by their places in the order of words.
    let mut pairs: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut lost: BTreeMap<usize, (usize, State)> = BTreeMap::new();
    let mut left = STEPS;
    for context in contexts {
        comes.union_with(context);
        let mut wanted = context.clone();
        wanted.union_with(&lexicon.ignored);
        let competing = if lexicon.mode == LexerMode::Longest { lexicon.competing() } else { wanted.clone() };
        for (place, &state) in states.iter().enumerate() {
            left = left.saturating_sub(1);
            if left == 0 {
                is_cut = true;
                break;
            }
            if !lexicon.union.accepts(state).intersects_bits(&wanted) {
                continue;
            }
            let all = lexicon.labels(state, |at| competing.contains(at));
            let labels: Vec<usize> = all.iter().copied().filter(|&label| wanted.contains(label)).collect();
            wins.extend(labels.iter().copied());
            if let Some(&winner) = all.first() {
                for loser in lexicon.union.accepts(state).iter() {
                    if context.contains(loser) && !all.contains(&loser) {
                        lost.entry(loser).or_insert((winner, state));
                    }
                }
            }
            for (at, &first) in labels.iter().enumerate() {
                for &second in &labels[at + 1..] {
                    if pairs.len() >= PAIRS && !pairs.contains_key(&(first, second)) {
                        is_cut = true;
                        break;
                    }
                    let known = pairs.entry((first, second)).or_insert(place);
                    *known = place.min(*known);
                }
            }
        }
    }
    let pairs = pairs.into_iter().map(|((first, second), place)| Overlap {
        first,
        second,
        example: words.to(states[place]),
    });
    let never = |&(&terminal, _): &(&usize, &(usize, State))| {
        comes.contains(terminal) && !wins.contains(terminal) && !lexicon.ignored.contains(terminal) && !is_cut
    };
    let loser = |(&terminal, &(winner, state)): (&usize, &(usize, State))| Loser {
        terminal,
        winner,
        example: words.to(state),
    };
    Overlaps { pairs: pairs.collect(), losers: lost.iter().filter(never).map(loser).collect(), is_cut }
}

#[cfg(test)]
mod tests {
    use anygram_grammar::ir::Ties;

    use super::*;
    use crate::words::tests::lexicon;

    const SOURCE: &str = "start: \"if\" NAME INT | \"x\" HEX LATE\nNAME: /[a-z]+/\nINT: /[0-9]+/\nHEX: \
                          /[0-9a-f]+/\nLATE.-1: /[a-f]/\n%ignore /[ z]/";

    fn found(mode: LexerMode, ties: Ties, contexts: &[&[&str]]) -> (Vec<String>, Vec<String>) {
        let (names, lexicon) = lexicon(SOURCE, mode, ties);
        let at = |name: &&str| names.iter().position(|other| other == name).unwrap();
        let contexts: Vec<BitSet> = contexts
            .iter()
            .map(|context| BitSet::from_members(names.len(), context.iter().map(at)))
            .collect();
        let found = overlaps(&lexicon, &Words::new(&lexicon), &contexts);
        assert!(!found.is_cut);
        let show = |a: usize, b: usize, word: &[u8]| {
            format!("{} {} {}", names[a], names[b], String::from_utf8_lossy(word))
        };
        let pairs = found.pairs.iter().map(|pair| show(pair.first, pair.second, &pair.example)).collect();
        (pairs, found.losers.iter().map(|loser| show(loser.terminal, loser.winner, &loser.example)).collect())
    }

    #[test]
    fn only_what_competes_overlaps() {
        let each: &[&[&str]] = &[&["\"if\"", "\"x\""], &["NAME"], &["INT"], &["HEX"], &["LATE"]];
        let (pairs, losers) = found(LexerMode::Contextual, Ties::All, each);
        // An ignored terminal competes everywhere.
        assert_eq!((pairs, losers), (vec!["NAME /[ z]/ z".to_owned()], vec![]));
        let (pairs, losers) =
            found(LexerMode::Contextual, Ties::All, &[&["NAME", "\"if\"", "HEX"], &["INT", "HEX"]]);
        assert_eq!(pairs, ["NAME HEX a", "NAME \"if\" if", "NAME /[ z]/ z", "INT HEX 1"]);
        assert_eq!(losers, Vec::<String>::new());
        let (pairs, _) = found(LexerMode::Scannerless, Ties::All, &[&["NAME", "LATE"]]);
        assert_eq!(pairs, ["NAME LATE a", "NAME /[ z]/ z"]);
    }

    #[test]
    fn losers_are_named_with_what_takes_their_pieces() {
        let (_, losers) = found(LexerMode::Longest, Ties::All, &[&["NAME", "\"if\""], &["INT"], &["LATE"]]);
        assert_eq!(losers, ["LATE NAME a"]);
        // Alone it wins; with the name it never does.
        assert_eq!(
            found(LexerMode::Contextual, Ties::All, &[&["LATE"], &["LATE", "NAME"]]).1,
            Vec::<String>::new()
        );
        assert_eq!(found(LexerMode::Contextual, Ties::All, &[&["LATE", "NAME"]]).1, ["LATE NAME a"]);
        // The earlier of two patterns.
        let (pairs, losers) = found(LexerMode::Contextual, Ties::First, &[&["NAME", "\"if\"", "HEX"]]);
        assert_eq!((pairs, losers), (vec![], vec![]));
        assert_eq!(found(LexerMode::Longest, Ties::First, &[&["HEX", "INT"]]).1, Vec::<String>::new());
    }
}
