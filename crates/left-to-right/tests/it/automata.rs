//! Grammars some of whose rules automata give, against the same grammars written out: masks, budgets and
//! sentences, in every lexer mode.
//!
//! `ANYGRAM_SEED=17` replays one seed, `ANYGRAM_SEEDS=5000` sets how many are drawn (default 400).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anygram_bits::ErrorKind;
use anygram_grammar::automata::{RuleAutomaton, TooManyStates};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{AutomatonRule, Grammar, LexerMode, NonterminalId, Rule, Symbol, TerminalId, Ties};
use anygram_left_to_right::captures::{CaptureEvent, Captures};
use anygram_left_to_right::tree::Tree as ParseTree;
use anygram_left_to_right::{
    CompileError, Constraint, Engine, Language, LanguageOptions, MatchError, Matcher,
};
use anygram_testkit::generate::{EOS, RandomCase};
use anygram_testkit::random::Random;
use anygram_vocab::{LoadOptions, TokenId, Vocabulary};

const MODES: [LexerMode; 3] = [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual];

fn seeds() -> Vec<u64> {
    anygram_testkit::random::seeds(200)
}

/// A state of a tree of right-hand sides.
#[derive(Debug, Default)]
struct Node {
    steps: BTreeMap<u32, u32>,
    accepts: bool,
}

/// The right-hand sides of a nonterminal as a tree.
#[derive(Debug)]
struct Tree(Vec<Node>);

impl Tree {
    fn new<'a>(symbols: &[Symbol], sides: impl Iterator<Item = &'a Vec<Symbol>>) -> Self {
        let mut nodes = vec![Node::default()];
        for side in sides {
            let mut at = 0;
            for symbol in side {
                let number = symbols.iter().position(|known| known == symbol).expect("a symbol") as u32;
                let fresh = nodes.len() as u32;
                let next = *nodes[at].steps.entry(number).or_insert(fresh);
                if next == fresh {
                    nodes.push(Node::default());
                }
                at = next as usize;
            }
            nodes[at].accepts = true;
        }
        Self(nodes)
    }
}

impl RuleAutomaton for Tree {
    fn start(&self) -> u32 {
        0
    }

    fn symbols(&self, state: u32) -> Arc<[u32]> {
        self.0[state as usize].steps.keys().copied().collect()
    }

    fn step(&self, state: u32, symbol: u32) -> Result<u32, TooManyStates> {
        Ok(self.0[state as usize].steps[&symbol])
    }

    fn accepts(&self, state: u32) -> bool {
        self.0[state as usize].accepts
    }

    fn minimum(&self, state: u32) -> u32 {
        let Node { steps, accepts } = &self.0[state as usize];
        let next = || steps.values().map(|&to| self.minimum(to).saturating_add(1)).min();
        if *accepts { 0 } else { next().unwrap_or(u32::MAX) }
    }
}

/// The same grammar with automata in place of some or all rules of about half of the nonterminals. Only rules
/// that are left when it is reduced: front ends must see to it that what automata give derives something.
fn with_automata(random: &mut Random, grammar: &Grammar, reduced: &Cfg) -> Option<Grammar> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut automata = Vec::new();
    let mut sides: BTreeMap<NonterminalId, Vec<&Rule>> = BTreeMap::new();
    grammar.rules.iter().for_each(|rule| sides.entry(rule.lhs).or_default().push(rule));
    for (lhs, own) in sides {
        let n_own = if random.chance(50) { random.below(own.len() + 1) } else { own.len() };
        let (given, written) = own.split_at(n_own);
        let is_useful = given.iter().all(|rule| reduced.rules.contains(rule));
        let (given, written) = if is_useful { (given, written) } else { (&[][..], &own[..]) };
        rules.extend(written.iter().map(|&rule| rule.clone()));
        if given.is_empty() {
            continue;
        }
        let mut symbols: Vec<Symbol> = given.iter().flat_map(|rule| rule.rhs.iter().copied()).collect();
        symbols.sort_unstable();
        symbols.dedup();
        let tree = Tree::new(&symbols, given.iter().map(|rule| &rule.rhs));
        automata.push(AutomatonRule { lhs, automaton: Arc::new(tree), symbols: symbols.into() });
    }
    let has_any = !automata.is_empty();
    let Grammar { terminals, nonterminals, start, default_lexer, .. } = grammar.clone();
    let changed = || Grammar::with_automata(terminals, nonterminals, (rules, automata), start, default_lexer);
    has_any.then(changed).filter(|grammar| grammar.validate().is_ok())
}

fn vocabulary(case: &RandomCase) -> Vocabulary {
    let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let token = |token: &Option<Vec<u8>>| {
        token.as_ref().map_or("null".into(), |t| format!("{{\"hex\":\"{}\"}}", hex(t)))
    };
    let source = format!("[{}]", case.vocab.iter().map(token).collect::<Vec<String>>().join(","));
    let options = LoadOptions { eos: vec![EOS], ..LoadOptions::default() };
    Vocabulary::from_bytes(anygram_vocab::Format::JsonArray, source.as_bytes(), &options).expect("tokens")
}

fn compiled(
    case: &RandomCase,
    grammar: &Grammar,
    ties: Ties,
    engine: Engine,
) -> Result<Matcher, CompileError> {
    let options = LanguageOptions { lexer: Some(case.mode), ties, engine, ..LanguageOptions::default() };
    let language = Language::new(grammar.clone(), &options)?;
    Ok(Constraint::new(Arc::new(language), vocabulary(case))?.matcher().expect("a matcher"))
}

/// What an output says; `None` where it was not decided.
type Said = Option<(Vec<TokenId>, bool, Vec<Vec<TokenId>>, Option<u32>)>;

fn said(matcher: &mut Matcher, with_costs: bool) -> Result<Said, MatchError> {
    let mut say = || {
        let mask = |mask: anygram_vocab::TokenMask| mask.iter().collect::<Vec<_>>();
        let plain = mask(matcher.mask()?);
        let (mut within, mut least) = (Vec::new(), None);
        if with_costs {
            for budget in [1, 2, 4] {
                within.push(mask(matcher.mask_with_budget(budget)?));
            }
            least = matcher.minimum_tokens(6)?;
        }
        Ok((plain, matcher.is_sentence(), within, least))
    };
    match say() {
        Ok(said) => Ok(Some(said)),
        Err(MatchError::Limit(error)) if error.kind() == ErrorKind::Undecided => Ok(None),
        Err(error) => Err(error),
    }
}

#[derive(Default)]
struct Tally {
    compared: usize,
    undecided: usize,
    with_automata: usize,
}

/// Reads the same tokens with both and compares what they say.
fn compare(random: &mut Random, (ours, theirs): (&mut Matcher, &mut Matcher), tally: &mut Tally, at: &str) {
    for _ in 0..3 {
        ours.reset();
        theirs.reset();
        for step in 0..6 {
            let with_costs = random.chance(30);
            let our = said(ours, with_costs).unwrap_or_else(|error| panic!("{at}: {error}"));
            let their = said(theirs, with_costs).unwrap_or_else(|error| panic!("{at}: {error}"));
            let (Some(our), Some(their)) = (our, their) else {
                tally.undecided += 1;
                break;
            };
            assert_eq!(our, their, "{at}, step {step}, after {:?}", ours.tokens());
            tally.compared += 1;
            let tokens: Vec<TokenId> = our.0.into_iter().filter(|token| token.0 != EOS).collect();
            if tokens.is_empty() {
                break;
            }
            let token = *random.choose(&tokens);
            if ours.advance(token).is_err() || theirs.advance(token).is_err() {
                tally.undecided += 1;
                break;
            }
        }
    }
}

/// Which terminal comes first may change, and with it who wins a tie.
const TIES: Ties = Ties::All;

/// A random grammar, and the same with automata.
struct Drawn {
    random: Random,
    at: String,
    case: RandomCase,
    grammar: Grammar,
    /// An output of the grammar written out.
    theirs: Matcher,
}

fn drawn(seed: u64, mode: LexerMode) -> Option<Drawn> {
    let mut random = Random::new(seed);
    let blanks = random.chance(50);
    let case = if blanks { RandomCase::with_blanks(seed, mode) } else { RandomCase::in_mode(seed, mode) };
    let at = format!("seed {seed}, {mode:?}, blanks {blanks}");
    let theirs = compiled(&case, &case.grammar, TIES, Engine::Earley).ok()?;
    let grammar = with_automata(&mut random, &case.grammar, &theirs.constraint().language().lexing().cfg)?;
    Some(Drawn { random, at, case, grammar, theirs })
}

#[test]
fn masks_and_budgets_are_those_of_the_grammar_written_out() {
    let mut tally = Tally::default();
    let mut refused = 0;
    for seed in seeds() {
        for mode in MODES {
            let Some(Drawn { mut random, at, case, grammar, theirs }) = drawn(seed, mode) else { continue };
            for engine in [Engine::Auto, Engine::Valiant] {
                let ours = compiled(&case, &grammar, TIES, engine);
                match ours {
                    Ok(mut ours) => {
                        let automata = &ours.constraint().language().lexing().cfg.automata;
                        tally.with_automata += usize::from(!automata.is_empty());
                        assert!(automata.is_empty() || engine == Engine::Auto);
                        compare(&mut random, (&mut ours, &mut theirs.fork()), &mut tally, &at);
                    }
                    // A symbol of an automaton derives the empty sequence, or nothing.
                    Err(error) if error.kind() == ErrorKind::Unsupported => refused += 1,
                    Err(error) if error.limit().is_some() => {
                        tally.undecided += 1;
                    }
                    Err(error) => panic!("{at}: {error}"),
                }
            }
        }
    }
    let Tally { compared, undecided, with_automata } = tally;
    println!("{compared} compared, {undecided} undecided, {with_automata} languages, {} refused", refused);
    assert!(compared > 1_000 && with_automata > 100 && undecided < compared / 20, "{compared}, {undecided}");
}

/// The symbol of another grammar with the same name.
fn same_symbol((grammar, symbol): (&Grammar, Symbol), other: &Grammar) -> Symbol {
    let name = grammar.symbol_name(symbol).to_string();
    let all: Vec<Symbol> = match symbol {
        Symbol::Terminal(_) => {
            (0..other.terminals.len()).map(|t| Symbol::Terminal(TerminalId::new(t))).collect()
        }
        Symbol::Nonterminal(_) => {
            (0..other.nonterminals.len()).map(|n| Symbol::Nonterminal(NonterminalId::new(n))).collect()
        }
    };
    let found = all.into_iter().find(|&symbol| other.symbol_name(symbol) == name);
    found.unwrap_or_else(|| panic!("{name}"))
}

/// What is certain of a text is the same, and whether it has a tree, which is a derivation.
#[test]
fn captures_and_trees_are_those_of_the_grammar_written_out() {
    let (mut n_events, mut n_trees) = (0, 0);
    for seed in seeds() {
        for mode in MODES {
            let Some(Drawn { mut random, at, case, grammar, mut theirs }) = drawn(seed, mode) else {
                continue;
            };
            let Ok(ours) = compiled(&case, &grammar, TIES, Engine::Auto) else { continue };
            let (our, their) = (ours.constraint().language(), theirs.constraint().language());
            let (our, their) = (our.clone(), their.clone());
            // Terminals have other numbers, and nonterminals the same names.
            let named = |language: &Language, events: Vec<CaptureEvent>| -> BTreeSet<_> {
                let name = |rule| language.grammar().symbol_name(Symbol::Nonterminal(rule)).to_string();
                events.into_iter().map(|event| (name(event.rule), event.start, event.end)).collect()
            };
            for _ in 0..3 {
                theirs.reset();
                let mut both = (Captures::new(our.clone()).unwrap(), Captures::new(their.clone()).unwrap());
                for _ in 0..6 {
                    let Ok(mask) = theirs.mask() else { break };
                    let tokens: Vec<TokenId> = mask.iter().filter(|token| token.0 != EOS).collect();
                    if tokens.is_empty() {
                        break;
                    }
                    let token = *random.choose(&tokens);
                    let bytes = theirs.constraint().vocabulary().bytes(token).unwrap_or_default().to_vec();
                    if theirs.advance(token).is_err() {
                        break;
                    }
                    let (Ok(one), Ok(other)) = (both.0.read(&bytes), both.1.read(&bytes)) else { break };
                    n_events += one.len();
                    let text = theirs.constraint().vocabulary().decode(theirs.tokens()).unwrap();
                    assert_eq!(named(&our, one), named(&their, other), "{at}: {text:?}");
                    let (Ok(one), Ok(other)) = (ParseTree::read(&our, &text), ParseTree::read(&their, &text))
                    else {
                        break;
                    };
                    assert_eq!(one.is_some(), other.is_some(), "{at}: {text:?}");
                    let Some(mut tree) = one else { continue };
                    n_trees += 1;
                    for node in &mut tree.nodes {
                        node.symbol = same_symbol((our.grammar(), node.symbol), their.grammar());
                    }
                    let checked = super::tree::check(their.grammar(), &text, &tree);
                    checked.unwrap_or_else(|wrong| panic!("{at}: {text:?}: {wrong}"));
                }
            }
        }
    }
    println!("{n_events} events, {n_trees} trees");
    assert!(n_events > 300 && n_trees > 300, "{n_events}, {n_trees}");
}
