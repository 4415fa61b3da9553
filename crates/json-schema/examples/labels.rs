//! Every label of the shared data by the lowered grammar.
use anygram_grammar::automata::RuleAutomaton;
use anygram_grammar::ir::{Pattern, Symbol};
use anygram_json_schema::algebra::{Algebra, Limits};
use anygram_json_schema::document::{Documents, Draft};
use anygram_json_schema::forms::Forms;
use anygram_json_schema::lower::{Lowered, Source, Whitespace, lower};
use anygram_json_schema::{read, refusal};
use anygram_lexer::dfa::{DEAD, Dfa, START};
use std::io::Read;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

enum Frame<'a> {
    Rule(&'a [Symbol]),
    Auto(usize, u32),
}
struct Node<'a>(Frame<'a>, Stack<'a>);
type Stack<'a> = Option<Rc<Node<'a>>>;

struct Sim<'a> {
    g: &'a Lowered,
    dfas: &'a [Option<Dfa>],
    rules: Vec<Vec<&'a [Symbol]>>,
    autos: Vec<Vec<usize>>,
}
impl<'a> Sim<'a> {
    fn new(g: &'a Lowered, dfas: &'a [Option<Dfa>]) -> Self {
        let mut rules = vec![Vec::new(); g.nonterminals.len()];
        for r in &g.rules { rules[r.lhs.index()].push(&*r.rhs); }
        let mut autos = vec![Vec::new(); g.nonterminals.len()];
        for (i, a) in g.automata.iter().enumerate() { autos[a.0.index()].push(i); }
        Self { g, dfas, rules, autos }
    }
    fn expand(&self, stack: &Stack<'a>, out: &mut Vec<(usize, Stack<'a>)>, end: &mut bool) {
        let Some(node) = stack else { *end = true; return };
        match &node.0 {
            Frame::Rule([]) => self.expand(&node.1, out, end),
            Frame::Rule(rest) => self.symbol(rest[0], Some(Rc::new(Node(Frame::Rule(&rest[1..]), node.1.clone()))), out, end),
            Frame::Auto(at, state) => {
                let (_, auto, symbols) = &self.g.automata[*at];
                if auto.accepts(*state) { self.expand(&node.1, out, end); }
                for &s in auto.symbols(*state).iter() {
                    let next = auto.step(*state, s).unwrap();
                    self.symbol(symbols[s as usize], Some(Rc::new(Node(Frame::Auto(*at, next), node.1.clone()))), out, end);
                }
            }
        }
    }
    fn symbol(&self, s: Symbol, after: Stack<'a>, out: &mut Vec<(usize, Stack<'a>)>, end: &mut bool) {
        match s {
            Symbol::Terminal(t) => out.push((t.index(), after)),
            Symbol::Nonterminal(n) => {
                for rhs in &self.rules[n.index()] { self.expand(&Some(Rc::new(Node(Frame::Rule(rhs), after.clone()))), out, end); }
                for &at in &self.autos[n.index()] {
                    let start = self.g.automata[at].1.start();
                    self.expand(&Some(Rc::new(Node(Frame::Auto(at, start), after.clone()))), out, end);
                }
            }
        }
    }
    /// How far the text is viable, and whether it is accepted.
    fn run(&self, text: &[u8]) -> (usize, bool) {
        let begin = |stack: &Stack<'a>, configs: &mut Vec<(usize, u32, Stack<'a>)>, end: &mut bool| {
            let mut out = Vec::new();
            self.expand(stack, &mut out, end);
            for (t, s) in out {
                let state = match &self.g.terminals[t].1 { Source::Regex(_) => START, Source::Automaton(a, _) => self.g.pieces[*a].start() };
                configs.push((t, state, s));
            }
        };
        let mut configs = Vec::new();
        let mut end = false;
        begin(&Some(Rc::new(Node(Frame::Rule(&[]), None))), &mut configs, &mut end);
        configs.clear();
        let mut out = Vec::new();
        self.symbol(Symbol::Nonterminal(self.g.start), None, &mut out, &mut end);
        for (t, s) in out {
            let state = match &self.g.terminals[t].1 { Source::Regex(_) => START, Source::Automaton(a, _) => self.g.pieces[*a].start() };
            configs.push((t, state, s));
        }
        end = false;
        for (at, &byte) in text.iter().enumerate() {
            let mut next = Vec::new();
            end = false;
            for (t, state, stack) in configs {
                let (to, accepts, live) = match &self.g.terminals[t].1 {
                    Source::Regex(_) => {
                        let dfa = self.dfas[t].as_ref().unwrap();
                        let to = dfa.step(state, byte);
                        if to == DEAD { continue }
                        (to, dfa.accepting[to as usize], dfa.can_go_on(to))
                    }
                    Source::Automaton(a, label) => {
                        let auto = &self.g.pieces[*a];
                        let Some(to) = auto.step(state, byte).unwrap() else { continue };
                        (to, auto.accepts(to).contains(label), auto.live(to).contains(label))
                    }
                };
                if accepts { begin(&stack, &mut next, &mut end); }
                if live { next.push((t, to, stack)); }
            }
            if next.is_empty() && !end { return (at, false) }
            configs = next;
            if configs.len() > 2000 { return (usize::MAX, false) }
        }
        (text.len(), end)
    }
}

fn main() {
    let mut skipped = 0; let (mut n, mut wrong, mut refused, mut blown, mut tests) = (0, 0, 0, 0, 0);
    let mut kinds = std::collections::BTreeMap::<String, usize>::new();
    let mut times = Vec::new();
    let mut memo: std::collections::HashMap<String, Option<Dfa>> = Default::default();
    for path in std::env::args().skip(1) {
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(std::fs::File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
        for line in text.lines() {
            let item = match read::read(line) { Ok(item) => item, Err(e) => { println!("unreadable {e} {}", &line[..60]); continue } };
            let raw: serde_json::Value = serde_json::from_str("null").unwrap();
            drop(raw);
            let id = item.get("id").unwrap().text().unwrap().clone();
            if std::env::var("ONLY").is_ok_and(|only| *only != *id) { continue }
            let schema = item.get("schema").unwrap();
            let start = Instant::now();
            n += 1; if std::env::var("TRACE").is_ok() { eprintln!("{id}"); }
            let mut work = || -> Result<(), refusal::Refusal> {
                let documents = Documents::new(schema, [], Draft::Draft2020)?;
                let mut algebra = Algebra::new(documents, true, Limits::default());
                let forms = Forms::new(&mut algebra)?;
                let lowered = lower(algebra, forms, Whitespace::Any, 1_000_000)?;
                times.push((start.elapsed(), lowered.nonterminals.len(), id.clone()));
                let dfas: Vec<Option<Dfa>> = lowered.terminals.iter().map(|(_, source)| match source {
                    Source::Regex(r) => memo.entry(r.clone()).or_insert_with(|| {
                        let hir = regex_syntax::ParserBuilder::new().build().parse(r).unwrap();
                        Some(Dfa::new(&Pattern::Regex(hir), &Default::default(), &mut anygram_bits::work::Work::unbounded()).unwrap())
                    }).clone(),
                    _ => None,
                }).collect();
                if start.elapsed().as_millis() > 100 { println!("slow compile {id} {:?}", start.elapsed()); }
                let sim = Sim::new(&lowered, &dfas);
                let data: Vec<(bool, String)> = item.get("tests").and_then(|t| t.items()).unwrap_or_default().iter().map(|test| {
                    (*test.get("valid").unwrap() == anygram_json_schema::value::Value::Bool(true), test.get("data").unwrap().to_string())
                }).collect();
                for (valid, text) in data {
                    if text.len() > 20000 { continue }
                    tests += 1;
                    let t0 = Instant::now(); let (upto, holds) = sim.run(text.as_bytes()); if upto == usize::MAX { skipped += 1; continue } if t0.elapsed().as_millis() > 1000 { println!("slow run {id} {:?} {}", t0.elapsed(), text.len()); }
                    if holds != valid {
                        wrong += 1;
                        if wrong < 30 { println!("WRONG {id} {valid} at {upto}: {}", text.chars().skip(upto.saturating_sub(60)).take(90).collect::<String>()); }
                    }
                }
                Ok(())
            };
            if let Err(refusal) = work() {
                if refusal.kind == refusal::Kind::Limit { blown += 1 } else { refused += 1 }
                let key = format!("{:?} {:?} {}", refusal.kind, refusal.keyword, &refusal.message.chars().take(50).collect::<String>());
                *kinds.entry(key).or_default() += 1;
                if !refusal.message.contains("not supported yet") { println!("{id}: {refusal}"); }
            }
        }
    }
    times.sort();
    println!("skipped {skipped}"); println!("{n} tests {tests} wrong {wrong} refused {refused} blown {blown}");
    for (k, v) in kinds { println!("{v} {k}"); }
    println!("p50 {:?} p99 {:?} max {:?}", times[times.len() / 2], times[times.len() * 99 / 100], &times[times.len().saturating_sub(5)..]);
    println!("total {:?}", times.iter().map(|t| t.0).sum::<std::time::Duration>());
}
#[allow(dead_code)] fn unused(_: Arc<dyn RuleAutomaton>) {}
