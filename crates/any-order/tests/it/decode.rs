//! The decoding loop with synthetic models: random tables of log-probabilities over random and over small
//! grammars, in all lexer modes.
//!
//! `ANYGRAM_SEED=17` replays one seed; `ANYGRAM_SEEDS=500` sets how many are drawn (default 40).

use std::collections::HashMap;
use std::sync::Arc;

use anygram_any_order::decode::{
    Answer, Asked, Configured, DecodeError, DecodeOptions, Decoded, Decoder, Event, Exact, ExactBy, Ground,
    Lave, Model, ModelError, Named, OpenSlots, Order, Pace, Revision, STRATEGIES, Sampling, Sequential,
    Strategy, View, Why,
};
use anygram_any_order::{Canvas, End, Floor, LogProbs, Lookahead, Method, Slot, Solver};
use anygram_grammar::ir::LexerMode;
use anygram_left_to_right::{Constraint, Language, LanguageOptions, Limits};
use anygram_testkit::generate::{EOS, RandomCase};
use anygram_testkit::random::Random;
use anygram_vocab::{Format, LoadOptions, TokenId, Vocabulary};

fn seeds() -> Vec<u64> {
    anygram_testkit::random::seeds(40)
}

/// A table of log-probabilities for each slot, which may depend on what the model sees.
struct Table {
    size: usize,
    open: OpenSlots,
    /// The larger, the surer: weights are `sharpness` times noise in `[0, 1)`.
    sharpness: f32,
    seed: u64,
    /// Whether what is seen changes the table.
    looks: bool,
    n_asked: usize,
}

impl Table {
    fn new(size: usize, open: OpenSlots, sharpness: f32, seed: u64) -> Self {
        Self { size, open, sharpness, seed, looks: true, n_asked: 0 }
    }
}

impl Model for Table {
    fn vocabulary_size(&self) -> usize {
        self.size
    }

    fn open_slots(&self) -> OpenSlots {
        self.open
    }

    fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
        assert_eq!(rows.len(), view.wanted.len() * self.size);
        assert!(view.wanted.is_sorted_by(|a, b| a < b));
        self.n_asked += 1;
        let mut seen = self.seed;
        if self.looks {
            view.tokens
                .iter()
                .for_each(|token| seen = seen.wrapping_mul(31).wrapping_add(u64::from(token.0)));
        }
        for (row, &slot) in rows.chunks_mut(self.size).zip(view.wanted) {
            if self.open == OpenSlots::Next {
                assert_eq!(slot, view.tokens.len());
            }
            let mut random = Random::new(seen ^ (slot as u64) << 32);
            row.fill_with(|| self.sharpness * random.below(1_000) as f32 / 1_000.0);
        }
        Ok(())
    }
}

/// Likes one token in each slot best, by so much; others as a table has it.
struct Likes {
    tokens: Vec<u32>,
    lead: Vec<f32>,
    size: usize,
    open: OpenSlots,
}

impl Model for Likes {
    fn vocabulary_size(&self) -> usize {
        self.size
    }

    fn open_slots(&self) -> OpenSlots {
        self.open
    }

    fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
        for (row, &slot) in rows.chunks_mut(self.size).zip(view.wanted) {
            row.fill(0.0);
            row[self.tokens[slot] as usize] = self.lead[slot];
        }
        Ok(())
    }
}

fn constraint(grammar: &str, tokens: &str, special: &LoadOptions) -> Constraint {
    let grammar =
        anygram_grammar::lark::parse(grammar, &anygram_grammar::lark::LarkOptions::default()).unwrap();
    let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
    let vocabulary = Vocabulary::from_bytes(Format::JsonArray, tokens.as_bytes(), special).unwrap();
    Constraint::new(Arc::new(language), vocabulary).unwrap()
}

/// Brackets: `(`, `)`, `x`, `()`, EOS 4, MASK 5.
fn brackets() -> Constraint {
    let special = LoadOptions { eos: vec![4], mask: Some(5), ..LoadOptions::default() };
    constraint("start: \"x\" | \"(\" start* \")\"", r#"["(",")","x","()",null,null]"#, &special)
}

const MASK: OpenSlots = OpenSlots::Mask(TokenId(5));

fn make(constraint: &Constraint, name: &str) -> Box<dyn Strategy> {
    Named::find(name).unwrap().make(constraint).unwrap()
}

fn decode(
    constraint: &Constraint,
    name: &str,
    canvas: &Canvas,
    model: &mut dyn Model,
    options: &DecodeOptions,
) -> Decoded {
    let decoded = Decoder::new(constraint, make(constraint, name)).decode(canvas, model, options);
    decoded.unwrap_or_else(|error| panic!("{name}, {canvas:?}, {options:?}: {error}"))
}

fn ids(decoded: &Decoded) -> Vec<u32> {
    decoded
        .tokens()
        .unwrap_or_else(|| panic!("not filled: {decoded:?}"))
        .iter()
        .map(|token| token.0)
        .collect()
}

fn is_sentence(constraint: &Constraint, decoded: &Decoded) -> bool {
    let Some(tokens) = decoded.tokens() else { return false };
    // Without the limits of the solver, which what is tested has.
    let mut matcher = constraint.matcher().unwrap();
    tokens.into_iter().all(|token| matcher.advance(token).is_ok()) && matcher.is_sentence()
}

fn holes(n: usize) -> Canvas {
    Canvas::new(vec![Slot::Hole; n], End::Sentence)
}

/// Options that go through everything the loop knows.
fn any_options(random: &mut Random, seed: u64) -> DecodeOptions {
    DecodeOptions {
        order: *random.choose(&[Order::Confidence, Order::Entropy, Order::Margin, Order::Random]),
        pace: *random.choose(&[Pace::Even, Pace::Tokens(2), Pace::Threshold(0.4), Pace::EntropyBound(0.5)]),
        steps: random.between(1, 4),
        block: *random.choose(&[None, Some(1), Some(2)]),
        sampling: Sampling {
            temperature: *random.choose(&[0.0, 0.7]),
            last_temperature: *random.choose(&[None, Some(0.2)]),
            top_k: *random.choose(&[None, Some(2)]),
            top_p: *random.choose(&[None, Some(0.8)]),
        },
        revision: *random.choose(&[
            Revision::Stay,
            Revision::TakeBack { below: 0.3, most: 3 },
            Revision::Edit { above: 0.4, most: 2 },
            Revision::Renew,
        ]),
        refusals: *random.choose(&[None, Some(0), Some(2)]),
        seed,
        ..DecodeOptions::default()
    }
}

/// What cannot be asked of a model that knows only the next token.
fn asks_again(options: &DecodeOptions) -> bool {
    matches!(options.revision, Revision::Renew | Revision::Edit { .. })
}

fn random_case(seed: u64, limits: Limits) -> Option<(RandomCase, Constraint, usize)> {
    let mode = [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual][seed as usize % 3];
    let case = RandomCase::in_mode(seed, mode);
    let (constraint, size) = constraint_of(&case, vec![EOS], limits)?;
    Some((case, constraint, size))
}

/// A case whose vocabulary lacks some texts, so that not all that is viable can be spelled; some have no EOS
/// either.
fn lacking_case(seed: u64) -> Option<(RandomCase, Constraint, usize)> {
    let mode = [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual][seed as usize % 3];
    let mut case = RandomCase::in_mode(seed, mode);
    let mut random = Random::new(seed ^ 0x1ac4);
    let eos = if random.chance(70) { vec![EOS] } else { vec![] };
    let percent = *random.choose(&[30, 60, 80]);
    case.vocab.iter_mut().filter(|_| random.chance(percent)).for_each(|token| *token = None);
    for row in &mut case.tokens {
        row.retain(|&token| case.vocab[token as usize].is_some());
    }
    let (constraint, size) = constraint_of(&case, eos, Limits::default())?;
    Some((case, constraint, size))
}

/// Nothing if the language has no sentence.
fn constraint_of(case: &RandomCase, eos: Vec<u32>, limits: Limits) -> Option<(Constraint, usize)> {
    let options =
        LanguageOptions { lexer: Some(case.mode), ties: case.ties, limits, ..LanguageOptions::default() };
    let language = Language::new(case.grammar.clone(), &options).ok()?;
    let tokens = case.vocab.iter().map(|token| match token {
        Some(bytes) => {
            format!("{{\"hex\":\"{}\"}}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        None => "null".to_owned(),
    });
    let source = format!("[{}]", tokens.collect::<Vec<_>>().join(","));
    let special = LoadOptions { eos, ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_bytes(Format::JsonArray, source.as_bytes(), &special).unwrap();
    let size = vocabulary.len();
    Some((Constraint::new(Arc::new(language), vocabulary).unwrap(), size))
}

fn random_canvas(case: &RandomCase, random: &mut Random) -> Canvas {
    let row: Vec<u32> = random.choose(&case.tokens).to_vec();
    let mut slots: Vec<Slot> = row.into_iter().take(6).map(|token| Slot::Fixed(TokenId(token))).collect();
    slots.iter_mut().filter(|_| random.chance(60)).for_each(|slot| *slot = Slot::Hole);
    slots.extend(vec![Slot::Hole; random.below(4)]);
    let end = if random.chance(70) { End::Sentence } else { End::Prefix { remaining: None } };
    Canvas::new(slots, end)
}

/// With gaps `contextual` searches on to the limit where it can say neither yes nor no.
fn asks_long(named: &Named, constraint: &Constraint) -> bool {
    named.name == "intersection" && constraint.language().lexing().mode() == LexerMode::Contextual
}

/// Whatever the model, the order, the pace and the revision: `exact` and its kin fill every canvas that is
/// completable, and all others leave nothing behind that they say is proven and is not. All runs can be
/// repeated, on fresh tables and on warm ones.
#[test]
fn every_strategy_with_any_options() {
    let (mut n_exact, mut n_stuck, mut n_others, mut n_sentences) = (0, 0, 0, 0);
    for seed in seeds() {
        let Some((case, constraint, size)) = random_case(seed, Limits::default()) else { continue };
        let mut random = Random::new(seed ^ 0x100b);
        let mut solver = Solver::new(&constraint).unwrap();
        let mut decoders: Vec<Decoder> = STRATEGIES
            .iter()
            .map(|named| Decoder::new(&constraint, named.make(&constraint).unwrap()))
            .collect();
        for _ in 0..6 {
            let canvas = random_canvas(&case, &mut random);
            let is_completable = solver.completable(&canvas).unwrap().decided();
            let options = any_options(&mut random, seed);
            let open = *random.choose(&[OpenSlots::Mask(TokenId(0)), OpenSlots::Noise, OpenSlots::Next]);
            let sharpness = *random.choose(&[0.5, 4.0, 20.0]);
            if asks_again(&options) && open == OpenSlots::Next {
                continue;
            }
            for (named, decoder) in STRATEGIES.iter().zip(&mut decoders) {
                if asks_long(named, &constraint) {
                    continue;
                }
                let question = format!("seed {seed}, {}, {canvas:?}, {open:?}, {options:?}", named.name);
                let run = |decoder: &mut Decoder| {
                    decoder.decode(&canvas, &mut Table::new(size, open, sharpness, seed), &options).unwrap()
                };
                let decoded = run(decoder);
                if seed % 4 == 0 {
                    let again = run(&mut Decoder::new(&constraint, named.make(&constraint).unwrap()));
                    assert_eq!(decoded.trace.events(), again.trace.events(), "{question}");
                    assert_eq!(decoded.canvas, again.canvas, "{question}");
                }
                assert_eq!(decoded.is_stuck, decoded.tokens().is_none(), "{question}");
                let given = canvas.slots().iter().zip(decoded.canvas.slots());
                assert!(given.clone().all(|(old, new)| *old == Slot::Hole || old == new), "{question}");
                let ends = solver.completable(&decoded.canvas).unwrap().decided() == Some(true);
                let is_exact = ["exact", "compatible", "best", "sample"].contains(&named.name);
                if is_exact && is_completable == Some(true) {
                    assert!(!decoded.is_stuck && ends, "{question}: {decoded:?}");
                    n_exact += 1;
                }
                if !is_exact {
                    n_stuck += usize::from(decoded.is_stuck);
                    n_others += 1;
                    n_sentences += usize::from(!decoded.is_stuck && ends);
                }
            }
        }
    }
    println!(
        "{n_exact} runs of `exact` and its kin; of {n_others} others {n_stuck} stuck, {n_sentences} ended as \
         asked"
    );
    assert!(seeds().len() < 20 || n_exact > 100);
}

/// Each yes that a strategy calls proven within the loop is one of the solver.
#[test]
fn what_is_proven_is_so() {
    let n_checked = check_proofs(|seed| random_case(seed, Limits::default()));
    println!("{n_checked} proven judgements");
    assert!(seeds().len() < 20 || n_checked > 500);
}

/// Also where tokens of the vocabulary spell only some of the texts that a mask speaks of.
#[test]
fn what_is_proven_is_so_whatever_the_vocabulary_lacks() {
    let n_checked = check_proofs(lacking_case);
    println!("{n_checked} proven judgements");
    assert!(seeds().len() < 20 || n_checked > 500);
}

/// A mask speaks of texts: `c` may follow `a`, but no token says it. And a budget leaves room, but no EOS may
/// fill it.
#[test]
fn masks_prove_only_what_fills_the_holes() {
    let judged = |grammar: &str, tokens: &str, eos: Vec<u32>, name: &str, canvas: &Canvas| {
        let constraint = constraint(grammar, tokens, &LoadOptions { eos, ..LoadOptions::default() });
        let mut model = Table::new(3, OpenSlots::Noise, 1.0, 0);
        let decoded = decode(&constraint, name, canvas, &mut model, &DecodeOptions::default());
        let proven: Vec<bool> = decoded.trace.proposals().map(|one| one.judgement.proven).collect();
        (proven, decoded.is_stuck)
    };
    let prefix = |n| Canvas::new(vec![Slot::Hole; n], End::Prefix { remaining: None });
    let (plain, budget) = ("forced-sequential", "forced-sequential-with-budget");
    let (ac, tokens) = (r#"start: "a" "c""#, r#"["a","b",null]"#);
    assert_eq!(judged(ac, tokens, vec![2], plain, &prefix(2)), (vec![false], true));
    assert_eq!(judged(ac, tokens, vec![2], plain, &prefix(1)), (vec![true], false));
    let (a, tokens) = (r#"start: "a""#, r#"["a","b",null]"#);
    assert_eq!(judged(a, tokens, vec![], budget, &holes(2)), (vec![false], true));
    assert_eq!(judged(a, tokens, vec![], budget, &holes(1)), (vec![true], false));
    assert_eq!(judged(a, tokens, vec![2], budget, &holes(2)), (vec![true, true], false));
}

/// How many judgements are called proven; all of them are asked again.
fn check_proofs(case: impl Fn(u64) -> Option<(RandomCase, Constraint, usize)>) -> usize {
    let mut n_checked = 0;
    for seed in seeds() {
        let Some((case, constraint, size)) = case(seed) else { continue };
        let mut random = Random::new(seed ^ 0x77);
        let mut solver = Solver::new(&constraint).unwrap();
        for _ in 0..4 {
            let canvas = random_canvas(&case, &mut random);
            for named in STRATEGIES.iter().filter(|named| !asks_long(named, &constraint)) {
                let options = DecodeOptions { steps: 4, block: None, seed, ..DecodeOptions::default() };
                let mut model = Table::new(size, OpenSlots::Mask(TokenId(0)), 3.0, seed);
                let mut decoder = Decoder::new(&constraint, named.make(&constraint).unwrap());
                let decoded = match decoder.decode(&canvas, &mut model, &options) {
                    Ok(decoded) => decoded,
                    // Masks of `contextual` may come to a limit.
                    Err(error) if error.to_string().contains("was not decided in") => continue,
                    Err(error) => panic!("seed {seed}, {}, {canvas:?}: {error}\n{case}", named.name),
                };
                let mut replayed = canvas.clone();
                for event in decoded.trace.events() {
                    match event {
                        Event::Proposed(proposal) => {
                            let before = replayed.set(proposal.slot, proposal.token).unwrap();
                            assert_eq!(before, Slot::Hole);
                            let asked = solver.completable(&replayed).unwrap().decided();
                            // At a limit the solver does not know.
                            if proposal.judgement.proven && asked.is_some() {
                                assert!(
                                    asked == Some(proposal.judgement.kept),
                                    "seed {seed}, {}, {replayed:?}: {proposal:?}\n{case}",
                                    named.name
                                );
                                n_checked += 1;
                            }
                            if !proposal.judgement.kept {
                                replayed.clear(proposal.slot).unwrap();
                            }
                        }
                        Event::Filled { slot, token, .. } => {
                            replayed.set(*slot, *token).unwrap();
                        }
                        _ => {}
                    }
                }
                assert_eq!(replayed.slots(), decoded.canvas.slots(), "the trace tells all");
                assert_eq!(decoded.trace.events().len(), decoded.trace.micros().len());
            }
        }
    }
    n_checked
}

#[test]
fn fillings_are_checked_on_threads_with_the_same_result() {
    let constraint = brackets();
    let mut n_refused = 0;
    for seed in 0..30 {
        let run = |n_threads: usize, fillings: usize| {
            let lookahead = Lookahead { fillings, ..Lookahead::default() };
            let lave = Lave::new(&constraint).unwrap().lookahead(lookahead).on_threads(n_threads).unwrap();
            let options = DecodeOptions { steps: 6, seed, ..DecodeOptions::default() };
            let mut model = Table::new(6, MASK, 3.0, seed);
            Decoder::new(&constraint, Box::new(lave)).decode(&holes(14), &mut model, &options).unwrap()
        };
        let decoded = run(1, 10);
        n_refused += decoded.trace.n_refused();
        for n_threads in [2, 3, 16] {
            assert_eq!(run(n_threads, 10).trace.events(), decoded.trace.events());
        }
    }
    assert!(n_refused > 50, "{n_refused}");
}

#[test]
fn runs_side_by_side_are_those_of_one_thread() {
    use rayon::prelude::*;
    let constraint = brackets();
    let run = |seed: u64| {
        let named = &STRATEGIES[seed as usize % STRATEGIES.len()];
        let options = DecodeOptions { steps: 5, seed, ..DecodeOptions::default() };
        let options =
            DecodeOptions { sampling: Sampling { temperature: 0.8, ..Sampling::default() }, ..options };
        let decoded =
            decode(&constraint, named.name, &holes(12), &mut Table::new(6, MASK, 4.0, seed), &options);
        (decoded.canvas, decoded.trace.events().to_vec())
    };
    let alone: Vec<_> = (0..60).map(run).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let together: Vec<_> = pool.install(|| (0..60).into_par_iter().map(run).collect());
    assert!(alone == together);
}

#[test]
fn without_a_constraint_it_is_the_argmax() {
    let constraint = brackets();
    for steps in [1, 3, 12] {
        let mut model = Table { looks: false, ..Table::new(6, MASK, 4.0, 9) };
        let mut rows = vec![0.0; 12 * 6];
        let (tokens, wanted) = (vec![TokenId(5); 12], (0..12).collect::<Vec<_>>());
        model.log_probs(&View { tokens: &tokens, wanted: &wanted, step: 0, steps: 1 }, &mut rows).unwrap();
        // The mask token is never proposed; behind an EOS there is EOS.
        let best =
            |row: &[f32]| (0..5u32).max_by(|a, b| row[*a as usize].total_cmp(&row[*b as usize])).unwrap();
        let mut expected: Vec<u32> = rows.chunks(6).map(best).collect();
        if let Some(eos) = expected.iter().position(|id| *id == 4) {
            expected[eos..].fill(4);
        }
        let options = DecodeOptions { steps, ..DecodeOptions::default() };
        let decoded = decode(&constraint, "none", &holes(12), &mut model, &options);
        assert_eq!(ids(&decoded), expected);
        assert!(decoded.trace.n_asked() <= steps);
    }
}

/// The same as a loop over masks, slot by slot.
#[test]
fn forced_sequential_is_greedy_decoding_under_masks() {
    let constraint = brackets();
    for (seed, has_budget) in (0..20).flat_map(|seed| [(seed, false), (seed, true)]) {
        for open in [MASK, OpenSlots::Next, OpenSlots::Noise] {
            let n = 9;
            let mut model = Table { looks: false, ..Table::new(6, open, 4.0, seed) };
            let mut matcher = constraint.matcher().unwrap();
            let mut expected = Vec::new();
            while expected.len() < n && !matcher.has_ended() {
                let budget = (n - expected.len()) as u32;
                let mask = if has_budget { matcher.mask_with_budget(budget) } else { matcher.mask() };
                let mask = mask.unwrap();
                let mut row = vec![0.0; 6];
                let view = View {
                    tokens: &vec![TokenId(0); expected.len()],
                    wanted: &[expected.len()],
                    step: 0,
                    steps: 1,
                };
                model.log_probs(&view, &mut row).unwrap();
                let allowed = (0..5u32).filter(|id| mask.contains(TokenId(*id)));
                let best = allowed.max_by(|a, b| row[*a as usize].total_cmp(&row[*b as usize]));
                let best = best.expect("a mask of a viable text is never empty");
                matcher.advance(TokenId(best)).unwrap();
                expected.push(best);
            }
            let is_cut_off = !matcher.has_ended() && !matcher.is_sentence();
            assert!(!(is_cut_off && has_budget));
            expected.resize(n, 4);
            let mut strategy = Sequential::new(&constraint).unwrap();
            if has_budget {
                strategy = strategy.with_budget();
            }
            let mut decoder = Decoder::new(&constraint, Box::new(strategy));
            let options = DecodeOptions { steps: 3, ..DecodeOptions::default() };
            let decoded = decoder.decode(&holes(n), &mut model, &options).unwrap();
            assert_eq!(ids(&decoded), expected, "seed {seed}, {open:?}");
            let slots = decoded.trace.proposals().map(|proposal| proposal.slot);
            assert!(slots.is_sorted(), "from left to right");
        }
    }
}

/// Whatever a model says and however often proposals fail, recovery leads to an end, and with the room looked
/// at to a sentence.
#[test]
fn recovery_comes_to_an_end() {
    let constraint = brackets();
    let (mut n_recovered, mut n_stuck) = (0, 0);
    for seed in 0..60 {
        for (counts_room, sharpness) in [(true, 0.0), (true, 8.0), (false, 0.0), (false, 8.0)] {
            let lookahead = Lookahead { counts_room, fillings: 2, ..Lookahead::default() };
            let lave = Lave::new(&constraint).unwrap().lookahead(lookahead).attempts(2);
            let options = DecodeOptions { steps: 4, seed, ..DecodeOptions::default() };
            let mut model = Table::new(6, MASK, sharpness, seed);
            let decoded =
                Decoder::new(&constraint, Box::new(lave)).decode(&holes(15), &mut model, &options).unwrap();
            let fills = decoded
                .trace
                .events()
                .iter()
                .filter(|event| matches!(event, Event::Filled { why: Why::Recovery, .. }));
            n_recovered += fills.count();
            n_stuck += usize::from(decoded.is_stuck);
            if counts_room {
                assert!(
                    is_sentence(&constraint, &decoded),
                    "seed {seed}, sharpness {sharpness}: {decoded:?}"
                );
            }
        }
    }
    println!("{n_recovered} slots filled by recovery, {n_stuck} of 240 runs stuck");
    assert!(n_recovered > 100);
}

/// One bracket is open when proposals begin to fail: the cache has the filling, then a successor is drawn.
#[test]
fn recovery_puts_the_cache_and_then_a_successor() {
    let constraint = brackets();
    // The model wants ")" everywhere behind the first slot, the more to the left the less.
    let mut model = Likes { tokens: vec![0, 1, 1, 1], lead: vec![9.0, 3.0, 4.0, 5.0], size: 6, open: MASK };
    let lave = Lave::new(&constraint).unwrap().attempts(1);
    let canvas = Canvas::new([vec![Slot::Fixed(TokenId(2))], vec![Slot::Hole; 3]].concat(), End::Sentence);
    let options = DecodeOptions { steps: 3, ..DecodeOptions::default() };
    let decoded = Decoder::new(&constraint, Box::new(lave)).decode(&canvas, &mut model, &options).unwrap();
    // "x" is a sentence, and nothing but EOS can follow.
    assert_eq!(ids(&decoded), [2, 4, 4, 4]);
    assert!(decoded.trace.events().contains(&Event::Filled {
        step: 0,
        slot: 1,
        token: TokenId(4),
        why: Why::Recovery
    }));
}

#[test]
fn the_ablation_is_free_after_its_failures() {
    let constraint = brackets();
    let mut n_free = 0;
    for seed in 0..20 {
        let lookahead = Lookahead { fillings: 1, ..Lookahead::default() };
        let lave = Lave::new(&constraint).unwrap().lookahead(lookahead).attempts(3).without_recovery();
        let options = DecodeOptions { steps: 6, seed, ..DecodeOptions::default() };
        let mut model = Table::new(6, MASK, 2.0, seed);
        let decoded =
            Decoder::new(&constraint, Box::new(lave)).decode(&holes(12), &mut model, &options).unwrap();
        assert!(!decoded.is_stuck);
        let grounds: Vec<(bool, Ground)> = decoded
            .trace
            .proposals()
            .map(|proposal| (proposal.judgement.kept, proposal.judgement.ground))
            .collect();
        if let Some(first) = grounds.iter().position(|(_, ground)| *ground == Ground::Nothing) {
            n_free += 1;
            assert!(grounds[first - 3..first].iter().all(|(kept, _)| !kept));
            assert!(grounds[first..].iter().all(|pair| *pair == (true, Ground::Nothing)));
        }
    }
    assert!(n_free > 5, "{n_free}");
}

#[test]
fn eos_ends_the_canvas() {
    let constraint = brackets();
    // EOS in slot 1 is surest, then what stands behind it.
    let likes = || Likes { tokens: vec![2, 4, 0, 1], lead: vec![7.0, 9.0, 8.0, 6.0], size: 6, open: MASK };
    let options = DecodeOptions { pace: Pace::Tokens(1), ..DecodeOptions::default() };
    for named in STRATEGIES {
        let decoded = decode(&constraint, named.name, &holes(4), &mut likes(), &options);
        assert_eq!(ids(&decoded), [2, 4, 4, 4], "{}", named.name);
        assert!(decoded.trace.n_asked() <= 4);
    }
    // What the loop put behind the EOS before is overwritten, whether rows are complete (by margin) or not.
    // The `x` and the `)` that are put first suit each other.
    for order in [Order::Confidence, Order::Margin] {
        for name in ["none", "exact", "compatible"] {
            let options = DecodeOptions { order, ..options };
            let mut late =
                Likes { tokens: vec![2, 4, 2, 1], lead: vec![6.0, 7.0, 9.0, 8.0], size: 6, open: MASK };
            let decoded = decode(&constraint, name, &holes(4), &mut late, &options);
            assert_eq!(ids(&decoded), [2, 4, 4, 4], "{name}, {order:?}");
            assert_eq!(decoded.trace.n_refused(), 0, "{name}, {order:?}");
        }
    }
    // What was given is not.
    let given = Canvas::new(vec![Slot::Hole, Slot::Hole, Slot::Fixed(TokenId(0)), Slot::Hole], End::Sentence);
    assert_eq!(ids(&decode(&constraint, "none", &given, &mut likes(), &options)), [2, 4, 0, 4]);
    let given = Canvas::new(vec![Slot::Hole, Slot::Hole, Slot::Hole, Slot::Fixed(TokenId(1))], End::Sentence);
    for order in [Order::Confidence, Order::Margin] {
        let options = DecodeOptions { order, ..options };
        let decoded = decode(&constraint, "exact", &given, &mut likes(), &options);
        assert!(is_sentence(&constraint, &decoded) && ids(&decoded)[3] == 1, "{decoded:?}");
    }
}

/// A model that says something else once a slot is filled.
struct Turns {
    slot: usize,
    before: Likes,
    after: Likes,
}

impl Model for Turns {
    fn vocabulary_size(&self) -> usize {
        self.before.vocabulary_size()
    }

    fn open_slots(&self) -> OpenSlots {
        self.before.open_slots()
    }

    fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
        let is_open = OpenSlots::Mask(view.tokens[self.slot]) == self.before.open;
        if is_open { self.before.log_probs(view, rows) } else { self.after.log_probs(view, rows) }
    }
}

#[test]
fn nothing_stands_behind_where_the_text_ends() {
    let constraint = brackets();
    let options = DecodeOptions { pace: Pace::Tokens(1), ..DecodeOptions::default() };
    let likes =
        |lead: [f32; 5]| Likes { tokens: vec![0, 2, 1, 4, 1], lead: lead.to_vec(), size: 6, open: MASK };
    // `(x)` and EOS are likeliest, but the model is surest of a `)` in the last slot, which `((x))` alone
    // has.
    let ends = || likes([8.0, 7.0, 6.0, 5.0, 9.0]);
    // It sees that the text ends only when the first bracket stands.
    let turns = || Turns { slot: 0, before: likes([8.0, 0.1, 0.1, 0.0, 9.0]), after: ends() };
    for name in ["none", "exact", "compatible"] {
        let decoded = decode(&constraint, name, &holes(5), &mut ends(), &options);
        assert_eq!(ids(&decoded), [0, 2, 1, 4, 4], "{name}");
        assert_eq!(decoded.trace.n_refused(), 0, "{name}");
        let decoded = decode(&constraint, name, &holes(5), &mut turns(), &options);
        assert_eq!(ids(&decoded), [0, 2, 1, 4, 4], "{name}");
        assert_eq!(decoded.trace.n_refused(), 0, "{name}");
        let taken: Vec<usize> = decoded.trace.events().iter().filter_map(taken_back).collect();
        assert_eq!(taken, if name == "none" { vec![] } else { vec![4] }, "{name}");
    }
    // In the last step all is filled, and what was given stays.
    let one = DecodeOptions { steps: 1, ..DecodeOptions::default() };
    let decoded = decode(&constraint, "exact", &holes(5), &mut ends(), &one);
    assert!(is_sentence(&constraint, &decoded) && decoded.trace.n_asked() == 1, "{decoded:?}");
    let mut slots = vec![Slot::Hole; 5];
    slots[4] = Slot::Fixed(TokenId(1));
    let given = Canvas::new(slots, End::Sentence);
    let decoded = decode(&constraint, "exact", &given, &mut ends(), &options);
    assert!(is_sentence(&constraint, &decoded) && ids(&decoded)[4] == 1, "{decoded:?}");
}

fn taken_back(event: &Event) -> Option<usize> {
    if let Event::TakenBack { slot, .. } = event { Some(*slot) } else { None }
}

#[test]
fn blocks_are_filled_one_after_the_other() {
    let constraint = brackets();
    for name in ["none", "exact", "lookahead"] {
        let mut model = Table::new(6, MASK, 3.0, 5);
        let options = DecodeOptions { block: Some(4), steps: 6, ..DecodeOptions::default() };
        let decoded = decode(&constraint, name, &holes(11), &mut model, &options);
        let blocks = decoded.trace.proposals().filter(|proposal| proposal.judgement.kept);
        let blocks: Vec<usize> = blocks.map(|proposal| proposal.slot / 4).collect();
        assert!(blocks.is_sorted(), "{name}: {blocks:?}");
    }
    // 6 steps for 3 blocks: two each.
    let mut model = Likes { tokens: vec![0; 11], lead: vec![1.0; 11], size: 6, open: MASK };
    let options = DecodeOptions { block: Some(4), steps: 6, ..DecodeOptions::default() };
    let decoded = decode(&constraint, "none", &holes(11), &mut model, &options);
    let steps: Vec<usize> = decoded.trace.proposals().map(|proposal| proposal.step).collect();
    assert_eq!(steps, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5]);
}

#[test]
fn the_pace_says_how_many_are_kept() {
    let constraint = brackets();
    let lead = vec![9.0, 8.0, 7.0, 1.0, 0.5, 0.2];
    let steps = |pace: Pace, steps: usize| {
        let mut model = Likes { tokens: vec![0; 6], lead: lead.clone(), size: 6, open: MASK };
        let options = DecodeOptions { pace, steps, ..DecodeOptions::default() };
        let decoded = decode(&constraint, "none", &holes(6), &mut model, &options);
        decoded.trace.proposals().map(|proposal| (proposal.step, proposal.slot)).collect::<Vec<_>>()
    };
    assert_eq!(steps(Pace::Even, 2), [(0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (1, 5)]);
    assert_eq!(steps(Pace::Tokens(4), 1), [(0, 0), (0, 1), (0, 2), (0, 3), (1, 4), (1, 5)]);
    // The first three have 0.99 and more; then one a step, and in the last all.
    assert_eq!(steps(Pace::Threshold(0.9), 3), [(0, 0), (0, 1), (0, 2), (1, 3), (2, 4), (2, 5)]);
    // The entropies are next to nothing for three of them, then above 1 each: the largest is left out of the
    // sum.
    assert_eq!(steps(Pace::EntropyBound(0.1), 3), [(0, 0), (0, 1), (0, 2), (0, 3), (1, 4), (2, 5)]);
}

/// Is asked several times, and says then what it gives each token of each of three slots; the last holds from
/// then on.
struct Changing {
    answers: Vec<[(usize, f32); 3]>,
    asked: usize,
}

impl Changing {
    fn new(answers: &[[(usize, f32); 3]]) -> Self {
        Self { answers: answers.to_vec(), asked: 0 }
    }
}

impl Model for Changing {
    fn vocabulary_size(&self) -> usize {
        6
    }

    fn open_slots(&self) -> OpenSlots {
        MASK
    }

    fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
        let answer = self.answers[self.asked.min(self.answers.len() - 1)];
        self.asked += 1;
        for (row, &slot) in rows.chunks_mut(6).zip(view.wanted) {
            let (token, logit) = answer[slot];
            row.fill(0.0);
            row[token] = logit;
        }
        Ok(())
    }
}

/// First it is all for "x" in the second slot, then for "(" "x" ")" with the "x" in the middle: it doubts a
/// token as soon as something else stands beside it.
fn doubting() -> Changing {
    Changing::new(&[[(1, 1.0), (1, 2.0), (2, 6.0)], [(0, 6.0), (2, 6.0), (1, 6.0)]])
}

#[test]
fn tokens_are_taken_back() {
    let constraint = brackets();
    for name in ["none", "exact", "lookahead", "intersection"] {
        let options = DecodeOptions {
            pace: Pace::Tokens(1),
            revision: Revision::TakeBack { below: 0.2, most: 5 },
            ..DecodeOptions::default()
        };
        let decoded = decode(&constraint, name, &holes(3), &mut doubting(), &options);
        assert_eq!(ids(&decoded), [0, 2, 1], "{name}");
        let taken =
            decoded.trace.events().iter().any(|event| matches!(event, Event::TakenBack { step: 1, .. }));
        // The exact ones had nothing to take back if they did not fall for it.
        assert!(taken || decoded.trace.n_refused() > 0, "{name}: {:?}", decoded.trace);
        let stays = DecodeOptions { revision: Revision::Stay, ..options };
        let decoded = decode(&constraint, "none", &holes(3), &mut doubting(), &stays);
        assert_eq!(ids(&decoded)[2], 2, "without it, it stays");
    }
}

/// A canvas without a mask token: noise where nothing was accepted, all of it decided anew in each step.
#[test]
fn canvases_are_noised_again() {
    let constraint = brackets();
    let mut n_taken = 0;
    for seed in 0..20 {
        for name in ["none", "exact", "compatible", "best", "sample", "lookahead"] {
            let mut model = Table::new(6, OpenSlots::Noise, 9.0, seed);
            let options = DecodeOptions { steps: 5, seed, ..DecodeOptions::renoising() };
            let decoded = decode(&constraint, name, &holes(10), &mut model, &options);
            assert!(
                decoded.trace.n_asked() <= 6 || name == "lookahead",
                "{name}: {}",
                decoded.trace.n_asked()
            );
            n_taken += decoded
                .trace
                .events()
                .iter()
                .filter(|event| matches!(event, Event::TakenBack { .. }))
                .count();
            if name != "none" {
                assert!(is_sentence(&constraint, &decoded), "seed {seed}, {name}: {decoded:?}");
            }
        }
    }
    assert!(n_taken > 100, "{n_taken}");
    // Somebody who is sure is done at once.
    let mut sure = Likes { tokens: vec![0, 2, 1, 4], lead: vec![20.0; 4], size: 6, open: OpenSlots::Noise };
    let decoded = decode(&constraint, "exact", &holes(4), &mut sure, &DecodeOptions::renoising());
    assert_eq!((ids(&decoded), decoded.trace.n_asked()), (vec![0, 2, 1, 4], 1));
}

/// Gaps grow as much as is needed, where it is needed, and no more than is allowed.
#[test]
fn slots_are_inserted_where_there_is_a_gap() {
    let constraint = brackets();
    let fixed = |id: u32| Slot::Fixed(TokenId(id));
    // "((" gap "x" gap: two brackets have to be closed at the end.
    let canvas = Canvas::new(vec![fixed(0), fixed(0), Slot::Gap, fixed(2), Slot::Gap], End::Sentence);
    for name in ["exact", "compatible", "best", "sample"] {
        let mut model = Table::new(6, MASK, 3.0, 1);
        let decoded = decode(&constraint, name, &canvas, &mut model, &DecodeOptions::default());
        assert!(decoded.trace.events().contains(&Event::Inserted { step: 0, slot: 3, count: 2 }));
        assert!(is_sentence(&constraint, &decoded), "{name}: {decoded:?}");
        // Proposals that are made freely ask for more.
        let n_slots = ids(&decoded).len();
        assert!(
            if name == "compatible" { (6..=259).contains(&n_slots) } else { n_slots == 5 },
            "{name}: {decoded:?}"
        );
    }
    // A hole beside the first gap: the model wants "(" there, which takes one more bracket to close.
    let canvas =
        Canvas::new(vec![fixed(0), Slot::Hole, Slot::Gap, fixed(2), fixed(1), Slot::Gap], End::Sentence);
    let likes = || Likes { tokens: vec![0, 0, 1, 1, 1, 1, 1], lead: vec![9.0; 7], size: 6, open: MASK };
    let decoded = decode(&constraint, "compatible", &canvas, &mut likes(), &DecodeOptions::default());
    assert_eq!(ids(&decoded).len(), 5, "{decoded:?}");
    assert!(is_sentence(&constraint, &decoded) && ids(&decoded)[1] == 0);
    assert!(decoded.trace.proposals().any(|proposal| proposal.judgement.ground == Ground::Insertion));
    let none = DecodeOptions { inserted: 0, ..DecodeOptions::default() };
    let decoded = decode(&constraint, "compatible", &canvas, &mut likes(), &none);
    assert!(is_sentence(&constraint, &decoded) && ids(&decoded).len() == 4, "{decoded:?}");
    // Methods that know of no room leave gaps closed.
    let decoded = decode(&constraint, "none", &canvas, &mut likes(), &DecodeOptions::default());
    assert_eq!(decoded.canvas.slots().len(), 4);
}

/// Each refusal without a decision takes the whole limit; after four in a step a completion fills it.
#[test]
fn few_tokens_of_a_step_stay_undecided() {
    let mut n_most = 0;
    for seed in seeds() {
        let limits = Limits { canvas_steps: 30, ..Limits::default() };
        let Some((case, constraint, size)) = random_case(seed, limits) else { continue };
        let canvas = random_canvas(&case, &mut Random::new(seed ^ 0x717));
        for name in ["exact", "compatible"] {
            let mut model = Table::new(size, MASK, 3.0, seed);
            let options = DecodeOptions { steps: 3, ..DecodeOptions::default() };
            let decoded = decode(&constraint, name, &canvas, &mut model, &options);
            let mut n_undecided = vec![0; decoded.trace.n_asked()];
            for proposal in decoded.trace.proposals() {
                let judgement = proposal.judgement;
                n_undecided[proposal.step] += usize::from(!judgement.kept && !judgement.proven);
            }
            // More only where there is no completion to fill it with.
            let rescued = decoded.trace.events().iter().filter_map(|event| match event {
                Event::Filled { step, why: Why::Rescue, .. } => Some(*step),
                _ => None,
            });
            for step in rescued {
                assert!(n_undecided[step] <= 4, "seed {seed}, {name}: {n_undecided:?}");
                n_most += usize::from(n_undecided[step] == 4);
            }
        }
    }
    assert!(n_most > 0, "no step had so many");
}

#[test]
fn several_regions_of_any_text_are_filled() {
    let mut n_inserted = 0;
    for seed in seeds() {
        // Where it is not decided soon whether there is room, there is none.
        let limits = Limits { canvas_steps: 100_000, ..Limits::default() };
        let Some((case, constraint, size)) = random_case(seed, limits) else { continue };
        if constraint.language().lexing().mode() == LexerMode::Contextual {
            continue;
        }
        let mut random = Random::new(seed ^ 0x9a9);
        let mut solver = Solver::new(&constraint).unwrap();
        for _ in 0..4 {
            let mut slots = random_canvas(&case, &mut random).slots().to_vec();
            for _ in 0..random.between(1, 3) {
                slots.insert(random.below(slots.len() + 1), Slot::Gap);
            }
            let canvas = Canvas::new(slots, End::Sentence);
            if solver.completable(&canvas).unwrap().decided() != Some(true) {
                continue;
            }
            for name in ["compatible", "best"] {
                let mut model = Table::new(size, OpenSlots::Mask(TokenId(0)), 5.0, seed);
                let options = DecodeOptions { steps: 3, seed, ..DecodeOptions::default() };
                let decoded = decode(&constraint, name, &canvas, &mut model, &options);
                assert!(is_sentence(&constraint, &decoded), "seed {seed}, {name}, {canvas:?}: {decoded:?}");
                let inserted =
                    decoded.trace.events().iter().filter(|event| matches!(event, Event::Inserted { .. }));
                n_inserted += inserted.count();
            }
        }
    }
    println!("{n_inserted} insertions");
    assert!(seeds().len() < 20 || n_inserted > 20);
}

/// How often `lookahead` accepts what can be completed, by the number of fillings and how sure the marginals
/// are of the right tokens.
#[test]
fn lookahead_accepts_more_with_more_fillings_and_surer_marginals() {
    use anygram_any_order::{LogProbs, Methods};
    let constraint = brackets();
    let text = [0u32, 0, 2, 1, 0, 3, 2, 1, 1];
    let mut methods = Methods::new(&constraint).unwrap();
    let mut shares = Vec::new();
    println!("accepted of 200, with 50 % of 9 slots open, by sharpness (rows) and N = 1, 3, 10, 50");
    for sharpness in [0.0f32, 2.0, 4.0, 8.0] {
        let mut row = Vec::new();
        for fillings in [1, 3, 10, 50] {
            let mut n_accepted = 0;
            for seed in 0..200 {
                let mut random = Random::new(seed);
                let mut slots: Vec<Slot> = text.iter().map(|&id| Slot::Fixed(TokenId(id))).collect();
                slots[..8].iter_mut().filter(|_| random.chance(50)).for_each(|slot| *slot = Slot::Hole);
                let canvas = Canvas::new(slots, End::Sentence);
                let mut values = Vec::new();
                for hole in canvas.holes() {
                    let mut weights: Vec<f32> =
                        (0..6).map(|_| random.below(1_000) as f32 / 1_000.0).collect();
                    weights[text[hole] as usize] += sharpness;
                    values.extend(weights);
                }
                let log_probs = LogProbs::dense(values.clone(), 6).unwrap();
                let lookahead = Lookahead { fillings, seed, ..Lookahead::default() };
                let verdict =
                    methods.completable(&canvas, Method::Lookahead, Some(&log_probs), lookahead).unwrap();
                n_accepted += usize::from(verdict.decision.is_yes());
                assert!(!verdict.decision.is_yes() || verdict.proven);
            }
            row.push(n_accepted);
        }
        println!("{sharpness}: {row:?}");
        assert!(row.is_sorted(), "{row:?}");
        shares.push(row);
    }
    assert!(shares.windows(2).all(|pair| pair[0][2] <= pair[1][2]), "{shares:?}");
    assert!(shares[3][2] > 190 && shares[0][0] < 100);
}

#[test]
fn as_published_lookahead_does_not_count_the_room() {
    use anygram_any_order::Methods;
    let constraint = brackets();
    let mut methods = Methods::new(&constraint).unwrap();
    // "((" and one slot: no sentence.
    let canvas =
        Canvas::new(vec![Slot::Fixed(TokenId(0)), Slot::Fixed(TokenId(0)), Slot::Hole], End::Sentence);
    let ask = |methods: &mut Methods, counts_room| {
        let lookahead = Lookahead { counts_room, ..Lookahead::default() };
        let verdict = methods.completable(&canvas, Method::Lookahead, None, lookahead).unwrap();
        (verdict.decision.decided(), verdict.proven)
    };
    assert_eq!(ask(&mut methods, true), (Some(false), true));
    assert_eq!(ask(&mut methods, false), (Some(true), false));
}

#[test]
fn what_cannot_be_is_said() {
    let constraint = brackets();
    let run = |model: &mut dyn Model, options: DecodeOptions| {
        let strategy = Asked::new(&constraint, Method::None).unwrap();
        Decoder::new(&constraint, Box::new(strategy)).decode(&holes(3), model, &options)
    };
    let table = |size, open| Table::new(size, open, 1.0, 1);
    let plain = DecodeOptions::default();
    let error = run(&mut table(3, MASK), plain).unwrap_err();
    assert!(matches!(error, DecodeError::Columns { columns: 3, size: 6 }), "{error}");
    for options in [
        DecodeOptions { pace: Pace::Tokens(0), ..plain },
        DecodeOptions { block: Some(0), ..plain },
        DecodeOptions { sampling: Sampling { temperature: f64::NAN, ..Sampling::default() }, ..plain },
        DecodeOptions { sampling: Sampling { top_p: Some(1.5), ..Sampling::default() }, ..plain },
        DecodeOptions { revision: Revision::TakeBack { below: -0.1, most: 1 }, ..plain },
        DecodeOptions { revision: Revision::Edit { above: 1.1, most: 1 }, ..plain },
        DecodeOptions { pace: Pace::EntropyBound(f64::NAN), ..plain },
    ] {
        assert!(matches!(run(&mut table(6, MASK), options), Err(DecodeError::Options(_))), "{options:?}");
    }
    let next = run(&mut table(6, OpenSlots::Next), DecodeOptions::renoising());
    assert!(matches!(next, Err(DecodeError::Options(_))));
    struct Broken;
    impl Model for Broken {
        fn vocabulary_size(&self) -> usize {
            8
        }
        fn open_slots(&self) -> OpenSlots {
            MASK
        }
        fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
            if view.step == 0 {
                rows.fill(f32::NAN)
            } else {
                return Err("out of tokens".into());
            }
            Ok(())
        }
    }
    assert!(matches!(run(&mut Broken, plain), Err(DecodeError::Canvas(_))));
    // A row that excludes everything: `none` is stuck, `exact` knows better.
    struct Silent;
    impl Model for Silent {
        fn vocabulary_size(&self) -> usize {
            8
        }
        fn open_slots(&self) -> OpenSlots {
            MASK
        }
        fn log_probs(&mut self, _view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
            rows.fill(f32::NEG_INFINITY);
            Ok(())
        }
    }
    assert!(run(&mut Silent, plain).unwrap().is_stuck);
    for by in [ExactBy::Admissible, ExactBy::Compatible, ExactBy::Best, ExactBy::Sample] {
        let exact = Exact::new(&constraint, by).unwrap();
        let decoded =
            Decoder::new(&constraint, Box::new(exact)).decode(&holes(3), &mut Silent, &plain).unwrap();
        assert!(is_sentence(&constraint, &decoded));
        let rescued = |event: &Event| matches!(event, Event::Filled { why: Why::Rescue, .. });
        assert!(decoded.trace.events().iter().any(rescued));
    }
}

#[test]
fn names_are_found_once() {
    for named in STRATEGIES {
        assert_eq!(STRATEGIES.iter().filter(|other| other.name == named.name).count(), 1);
        assert_eq!(Named::find(named.name).unwrap().about, named.about);
    }
    assert!(Named::find("lave").is_none());
    for name in ["exact", "lookahead", "lookahead:N=3:tau=20:published"] {
        assert_eq!(Configured::parse(name).unwrap().name(), name);
    }
    for wrong in ["", "lave", "exact:N=3", "lookahead:N", "lookahead:N=0", "lookahead:tau=x", "lookahead:"] {
        let error = Configured::parse(wrong).unwrap_err();
        assert!(error.to_string().contains("`lookahead` with parameters"), "{error}");
    }
}

/// Whether tokens are refused one by one or left out by complete sets changes nothing of what is kept.
#[test]
fn rows_on_demand_keep_what_complete_rows_keep() {
    let (mut n_runs, mut n_refused) = (0, 0);
    for seed in seeds() {
        let Some((case, constraint, size)) = random_case(seed, Limits::default()) else { continue };
        let mut random = Random::new(seed ^ 0xde3a);
        let mut decoders = [0, 1, 2, 64].map(|refusals| {
            let exact = Exact::new(&constraint, ExactBy::Admissible).unwrap();
            Decoder::new(&constraint, Box::new(exact.complete_after(refusals)))
        });
        for _ in 0..6 {
            let canvas = random_canvas(&case, &mut random);
            let sharpness = *random.choose(&[0.5, 4.0, 20.0]);
            let options = DecodeOptions {
                order: Order::Confidence,
                pace: *random.choose(&[Pace::Even, Pace::Tokens(2), Pace::Threshold(0.4)]),
                sampling: Sampling::default(),
                refusals: None,
                ..any_options(&mut random, seed)
            };
            let runs = decoders.each_mut().map(|decoder| {
                let mut model = Table::new(size, OpenSlots::Mask(TokenId(0)), sharpness, seed);
                decoder.decode(&canvas, &mut model, &options).unwrap()
            });
            for run in &runs {
                assert_eq!(run.canvas, runs[0].canvas, "seed {seed}: {canvas:?}, {options:?}");
                n_refused += run.trace.n_refused();
            }
            n_runs += 1;
        }
    }
    assert!(seeds().len() < 20 || n_runs > 60 && n_refused > 0, "{n_runs} runs, {n_refused} refused");
}

/// Where tokens are drawn, drawing again what was refused comes to what drawing from complete sets comes to:
/// texts come up as often, where slots are filled one after the other.
#[test]
fn draws_on_demand_are_those_of_complete_rows() {
    const RUNS: u64 = 4_000;
    let constraint = brackets();
    let options = DecodeOptions {
        steps: 5,
        block: Some(1),
        sampling: Sampling { temperature: 0.8, ..Sampling::default() },
        ..DecodeOptions::default()
    };
    let mut counts: HashMap<Vec<u32>, [u64; 2]> = HashMap::new();
    let mut n_refused = [0; 2];
    for (at, refusals) in [0, 1_000].into_iter().enumerate() {
        let exact = Exact::new(&constraint, ExactBy::Admissible).unwrap().complete_after(refusals);
        let mut decoder = Decoder::new(&constraint, Box::new(exact));
        for seed in 0..RUNS {
            let mut model = Table::new(6, MASK, 2.0, 11);
            let options = DecodeOptions { seed, ..options };
            let decoded = decoder.decode(&holes(5), &mut model, &options).unwrap();
            n_refused[at] += decoded.trace.n_refused();
            counts.entry(ids(&decoded)).or_default()[at] += 1;
        }
    }
    assert!(n_refused[0] == 0 && n_refused[1] > 1_000, "{n_refused:?}");
    assert!(counts.len() > 5, "{counts:?}");
    for (text, [complete, on_demand]) in counts {
        let spread = ((complete + on_demand) as f64).sqrt();
        assert!(
            complete.abs_diff(on_demand) as f64 <= 4.0 * spread + 1.0,
            "{text:?}: {complete} {on_demand}"
        );
    }
}

/// A run that somebody else drives, with preparations or without, is the loop's. So is one whose rows list
/// all tokens.
#[test]
fn a_session_is_the_loop() {
    let mut n_runs = 0;
    for seed in seeds() {
        let Some((case, constraint, size)) = random_case(seed, Limits::default()) else { continue };
        let mut random = Random::new(seed ^ 0x5e55);
        for named in STRATEGIES.iter().filter(|named| !asks_long(named, &constraint)) {
            let canvas = random_canvas(&case, &mut random);
            let options = any_options(&mut random, seed);
            let open = *random.choose(&[OpenSlots::Mask(TokenId(0)), OpenSlots::Noise, OpenSlots::Next]);
            if asks_again(&options) && open == OpenSlots::Next {
                continue;
            }
            let question = format!("seed {seed}, {}, {canvas:?}, {open:?}, {options:?}", named.name);
            let table = || Table::new(size, open, 4.0, seed);
            let whole = decode(&constraint, named.name, &canvas, &mut table(), &options);
            for (prepares, lists) in [(false, false), (true, false), (true, true)] {
                let mut decoder = Decoder::new(&constraint, named.make(&constraint).unwrap());
                let mut model = table();
                let mut session = decoder.begin(&canvas, open, &options).unwrap();
                while let Some(view) = decoder.view(&mut session).unwrap() {
                    let mut values = vec![0.0; view.wanted.len() * size];
                    model.log_probs(&view, &mut values).unwrap();
                    if prepares {
                        decoder.prepare(&mut session).unwrap();
                    }
                    let rows = listed(&values, size);
                    let answer = if lists {
                        Answer::Rows(&rows)
                    } else {
                        Answer::Dense { values: &values, columns: size }
                    };
                    decoder.answer(&mut session, answer, None).unwrap();
                }
                let events = session.clone().decoded();
                if !lists {
                    assert_eq!(events.trace.events(), whole.trace.events(), "{question}");
                }
                // Rounding may change which of two slots is surer, and what is drawn from completions.
                let is_alone = options.order == Order::Confidence && options.block == Some(1);
                if !lists || is_alone && named.name != "sample" {
                    assert_eq!(events.canvas, whole.canvas, "{question}");
                }
                assert_eq!(events.is_stuck, whole.is_stuck || lists && events.is_stuck, "{question}");
            }
            n_runs += 1;
        }
    }
    assert!(seeds().len() < 20 || n_runs > 100, "{n_runs} runs");
}

/// Rows are prepared for a canvas that is another one once tokens are taken back.
#[test]
fn a_prepared_run_takes_back_alike() {
    let constraint = brackets();
    let revision = Revision::TakeBack { below: 0.6, most: 8 };
    let options = DecodeOptions { steps: 5, revision, ..DecodeOptions::default() };
    let mut n_taken = 0;
    for seed in 0..100 {
        for name in ["exact", "compatible"] {
            let run = |prepares: bool| {
                let mut model = Table::new(6, MASK, 6.0, seed);
                let mut decoder = Decoder::new(&constraint, make(&constraint, name));
                let mut session = decoder.begin(&holes(10), MASK, &options).unwrap();
                while let Some(view) = decoder.view(&mut session).unwrap() {
                    let mut values = vec![0.0; view.wanted.len() * 6];
                    model.log_probs(&view, &mut values).unwrap();
                    if prepares {
                        decoder.prepare(&mut session).unwrap();
                    }
                    let answer = Answer::Dense { values: &values, columns: 6 };
                    decoder.answer(&mut session, answer, None).unwrap();
                }
                session.decoded()
            };
            let decoded = run(false);
            assert_eq!(run(true).trace.events(), decoded.trace.events(), "seed {seed}, {name}");
            n_taken += decoded.trace.events().iter().filter_map(taken_back).count();
        }
    }
    assert!(n_taken > 100, "{n_taken} taken back");
}

/// All tokens of each row, with their log-probabilities.
fn listed(values: &[f32], size: usize) -> LogProbs {
    let row = |row: &[f32]| {
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let all = f64::from(top) + row.iter().map(|value| f64::from(value - top).exp()).sum::<f64>().ln();
        (0..).zip(row).map(|(id, &value)| (TokenId(id), f64::from(value) - all)).collect()
    };
    let rows: Vec<Vec<_>> = values.chunks(size).map(row).collect();
    LogProbs::listed(&rows, Floor::default()).unwrap()
}

/// Tokens of a sampler of the model's own come first; for what is refused, the slot's next.
#[test]
fn given_tokens_are_tried_first() {
    let constraint = brackets();
    let mut decoder = Decoder::new(&constraint, make(&constraint, "exact"));
    let mut session = decoder.begin(&holes(3), MASK, &DecodeOptions::default()).unwrap();
    let values = [[3.0, 2.0, 1.0, 0.0, 0.5, 9.0]; 3].concat();
    let answer = Answer::Dense { values: &values, columns: 6 };
    assert_eq!(decoder.view(&mut session).unwrap().unwrap().wanted, [0, 1, 2]);
    // The first cannot be: no sentence begins with ")".
    let given = [(0, TokenId(1)), (2, TokenId(1))];
    decoder.answer(&mut session, answer, Some(&given)).unwrap();
    let fixed = |id| Slot::Fixed(TokenId(id));
    assert_eq!(session.slots(), [fixed(0), Slot::Hole, fixed(1)]);
    assert!(decoder.answer(&mut session, answer, None).is_err(), "the view was answered");
    assert_eq!(decoder.view(&mut session).unwrap().unwrap().wanted, [1]);
    let short = decoder.answer(&mut session, answer, None).unwrap_err();
    assert!(matches!(short, DecodeError::Rows { n_rows: 3, n_wanted: 1 }), "{short}");
    let logits = LogProbs::listed(&[vec![(TokenId(2), 3.0)]], Floor::default()).unwrap();
    let shares = decoder.answer(&mut session, Answer::Rows(&logits), None).unwrap_err();
    assert!(shares.to_string().contains("log_softmax"), "{shares}");
    // Nothing that is listed can stand there; a completion can.
    let listed = LogProbs::listed(&[vec![(TokenId(0), -0.1)]], Floor::default()).unwrap();
    decoder.answer(&mut session, Answer::Rows(&listed), None).unwrap();
    assert!(decoder.view(&mut session).unwrap().is_none());
    let decoded = session.clone().decoded();
    assert!(is_sentence(&constraint, &decoded), "{decoded:?}");
    let next = decoder.begin(&holes(3), MASK, &DecodeOptions::default()).unwrap();
    assert_eq!(next.slots(), [Slot::Hole; 3]);
    assert!(matches!(decoder.view(&mut session), Err(DecodeError::Stale)));
}

/// Likelier tokens replace those that stand, where the strategy keeps them, until nothing changes.
#[test]
fn likelier_tokens_replace_others() {
    let constraint = brackets();
    for name in ["none", "exact", "compatible", "intersection"] {
        let options = DecodeOptions {
            pace: Pace::Tokens(3),
            revision: Revision::Edit { above: 0.9, most: 4 },
            ..DecodeOptions::default()
        };
        let decoded = decode(&constraint, name, &holes(3), &mut changing(), &options);
        // "x" and two EOS in the first answer; "(x)" in the second, which `exact` reaches where single
        // replacements lead through sentences.
        let edits = decoded.trace.proposals().filter(|proposal| proposal.step > 0).count();
        assert!(edits > 0, "{name}");
        if name == "none" {
            assert_eq!(ids(&decoded), [0, 2, 1]);
        } else {
            assert!(is_sentence(&constraint, &decoded), "{name}: {decoded:?}");
        }
        assert!(decoded.trace.n_asked() <= 6, "{name}");
        let stays = DecodeOptions { revision: Revision::Stay, ..options };
        let decoded = decode(&constraint, name, &holes(3), &mut changing(), &stays);
        assert_eq!((ids(&decoded), decoded.trace.n_asked()), (vec![2, 4, 4], 1), "{name}");
    }
}

/// First it is for "x" and the end, then for "(x)".
fn changing() -> Changing {
    Changing::new(&[[(2, 9.0), (4, 9.0), (4, 9.0)], [(0, 9.0), (2, 9.0), (1, 9.0)]])
}
