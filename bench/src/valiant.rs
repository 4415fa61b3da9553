//! Measures the incremental Valiant recognizer: the facts of its paper, on our texts and one core.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anygram::{Compiler, Constraint, Engine, Language, LoadOptions, TokenId, Vocabulary};
use anygram_bits::work::Work;
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::TerminalId;
use anygram_grammar::normal::NormalForm;
use anygram_recognizer::earley::Earley;
use anygram_recognizer::valiant::Valiant;
use anygram_recognizer::{Recognizer, RecognizerLimits};
use anyhow::{Result, anyhow, bail};
use serde::Serialize;

use crate::draw::{self, Line};
use crate::input::{self, Pieces};
use crate::measure::{median, print_table, quantile, timed, us};

#[derive(clap::Args)]
pub struct Args {
    /// The folder of data and vocabularies; parts that need it are left out where it is missing.
    #[arg(long, value_name = "DIR", default_value = "../shared")]
    shared: PathBuf,
    /// How often each chart is built; medians are told.
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
    /// A longer chart than this is not built.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    longest: usize,
    /// Only texts whose name begins so.
    #[arg(long, value_name = "NAME", default_value = "")]
    only: String,
    /// Leave out the other engine, which is slow on long ambiguous texts.
    #[arg(long)]
    alone: bool,
    /// Also write everything as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also draw the time of a step.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    forms: Vec<Forms>,
    steps: Vec<Curve>,
    masks: Vec<Masks>,
}

/// (a) Sizes of the normal forms of a grammar.
#[derive(Serialize)]
struct Forms {
    grammar: String,
    rules: usize,
    binary: Size,
    /// None where Chomsky's form is larger than the limit.
    chomsky: Option<Size>,
}

#[derive(Serialize)]
struct Size {
    symbols: usize,
    rules: usize,
    stored: usize,
    build_us: f64,
}

/// (b) The time of a step of one engine, by the number of terminals before it.
#[derive(Serialize)]
struct Curve {
    text: String,
    engine: String,
    points: BTreeMap<usize, f64>,
    /// The states were there already, and a step is a look-up: an engine that remembers.
    n_items: usize,
}

/// (c) and (d): one step of the parser against a whole mask; what comes before the first.
#[derive(Serialize)]
struct Masks {
    grammar: String,
    engine: &'static str,
    parser_step_us: f64,
    mask_us: f64,
    mask_p99_us: f64,
    mask_and_advance_us: f64,
    mask_and_advance_p99_us: f64,
    parser_init_us: f64,
    compile_ms: f64,
    vocabulary_ms: f64,
    first_mask_ms: f64,
}

pub fn run(args: &Args) -> Result<()> {
    let report = Report { forms: forms(args)?, steps: steps(args)?, masks: masks(args)? };
    if let Some(path) = &args.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    if let Some(path) = &args.svg {
        draw(path, &report.steps)?;
    }
    Ok(())
}

fn size(form: &NormalForm, build_us: f64) -> Size {
    Size {
        symbols: form.used_symbols().count(),
        rules: form.n_rules(),
        stored: form.left_children().len(),
        build_us,
    }
}

fn forms(args: &Args) -> Result<Vec<Forms>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = [root.join("crates"), root.join("docs"), args.shared.join("data")];
    let mut named: Vec<(String, Cfg)> = vec![
        ("s: s s | \"a\"".into(), input::cfg(&[('S', "SS"), ('S', "a")])),
        ("saturated".into(), input::saturated(300, 103, 3_219)?),
    ];
    for path in folders.iter().flat_map(|folder| input::grammars(folder)) {
        let name = path.file_stem().map_or(String::new(), |name| name.to_string_lossy().into_owned());
        match input::language(&path, &Compiler::default()) {
            Ok(language) => named.push((name, language.lexing().cfg.as_ref().clone())),
            Err(error) => eprintln!("left out: {error}"),
        }
    }
    let measure = |(grammar, cfg): (String, Cfg)| {
        let (binary, binary_us) = timed(|| NormalForm::binary(&cfg));
        let (chomsky, chomsky_us) = timed(|| NormalForm::chomsky(&cfg, &mut Work::new(50_000_000, "steps")));
        let chomsky = chomsky.ok().map(|form| size(&form, chomsky_us));
        Forms { grammar, rules: cfg.rules.len(), binary: size(&binary, binary_us), chomsky }
    };
    let forms: Vec<Forms> = named.into_iter().map(measure).collect();
    let rows: Vec<Vec<String>> = forms
        .iter()
        .map(|form| {
            let of = |size: Option<&Size>, get: fn(&Size) -> usize| {
                size.map_or("-".into(), |size| get(size).to_string())
            };
            let (binary, chomsky) = (Some(&form.binary), form.chomsky.as_ref());
            let get: [fn(&Size) -> usize; 3] = [|size| size.symbols, |size| size.rules, |size| size.stored];
            let sizes = get.iter().flat_map(|&get| [of(binary, get), of(chomsky, get)]);
            [form.grammar.clone(), form.rules.to_string()].into_iter().chain(sizes).collect()
        })
        .collect();
    let columns = ["grammar", "rules", "symbols C2F", "CNF", "rules C2F", "CNF", "stored C2F", "CNF"];
    print_table(
        "Normal forms: symbols, rules, and left children, which are all that is stored",
        &columns,
        &rows,
    );
    Ok(forms)
}

/// Makes a fresh recognizer.
type Make = fn(&Cfg) -> Result<Box<dyn Recognizer>>;

const LIMITS: RecognizerLimits = RecognizerLimits { items: 2_000_000_000 };

const ENGINES: [(&str, Make); 3] = [
    ("valiant", |cfg| Ok(Box::new(Valiant::new(cfg.clone(), LIMITS)?))),
    ("valiant, CNF", |cfg| Ok(Box::new(Valiant::chomsky(cfg.clone(), LIMITS)?))),
    ("earley", |cfg| Ok(Box::new(Earley::new(cfg.clone(), RecognizerLimits { items: 20_000_000 })?))),
];

/// What is read, and by which grammar.
struct Workload {
    name: &'static str,
    cfg: Cfg,
    texts: Vec<Pieces>,
}

/// A terminal after the other, as a text without choices of labels.
fn word(terminals: impl Iterator<Item = u32>) -> Pieces {
    terminals.map(|terminal| vec![TerminalId(terminal)]).collect()
}

fn workloads(args: &Args) -> Result<Vec<Workload>> {
    let n = args.longest;
    // x + x * x + ( x …: terminals in the order in which the rules name them.
    let thin = [('S', "S+T"), ('S', "T"), ('T', "T*F"), ('T', "F"), ('F', "(S)"), ('F', "x")];
    let [plus, times, open, close, x] = [0, 1, 2, 3, 4];
    let phrase = [x, plus, x, times, open, x, plus, x, close, times, x, plus];
    let mut all = vec![
        Workload {
            name: "s: s s | \"a\"",
            cfg: input::cfg(&[('S', "SS"), ('S', "a")]),
            texts: vec![word((0..n).map(|_| 0))],
        },
        Workload {
            name: "thin (expressions)",
            cfg: input::cfg(&thin),
            texts: vec![word((0..n).map(|at| phrase[at % phrase.len()]))],
        },
        Workload {
            name: "saturated (3,219 rules)",
            cfg: input::saturated(300, 103, 3_219)?,
            texts: vec![word((0..n.min(1_020)).map(|_| 0))],
        },
    ];
    for name in ["treebank_raw", "sql_grammar"] {
        let file = |extension: &str| args.shared.join("data/replay").join(format!("{name}.{extension}"));
        if !file("lark").exists() {
            continue;
        }
        let language = input::language(&file("lark"), &Compiler::default())?;
        let mut texts = Vec::new();
        for text in input::texts(&file("tok.jsonl"))?.iter().take(100) {
            let mut engine = language.recognizer()?;
            texts.extend(input::pieces(&language, &mut *engine, text.text.as_bytes())?);
        }
        all.push(Workload { name, cfg: language.lexing().cfg.as_ref().clone(), texts });
    }
    Ok(all)
}

/// Steps of a curve are told in steps of so many terminals.
const BUCKET: usize = 20;

fn steps(args: &Args) -> Result<Vec<Curve>> {
    let mut curves: Vec<Curve> = Vec::new();
    for Workload { name, cfg, texts } in workloads(args)? {
        if !name.starts_with(&args.only) {
            continue;
        }
        let mut ends = Vec::new();
        for (engine_name, make) in &ENGINES[..if args.alone { 2 } else { ENGINES.len() }] {
            let mut times: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
            let (mut n_items, mut end) = (0, Vec::new());
            // Earley remembers what it has read, so every text gets a fresh engine; the rest would measure a
            // table.
            let runs = if texts.len() > 1 { 1 } else { args.runs };
            for text in std::iter::repeat_n(&texts, runs).flatten() {
                let mut engine = make(&cfg)?;
                let mut state = engine.start();
                for (at, labels) in text.iter().enumerate() {
                    let edges = input::edges(state, labels);
                    let (next, time) = timed(|| engine.extend(&edges));
                    let Ok(next) = next else { break };
                    let Some(next) = next else { bail!("{name}: {engine_name} refuses terminal {at}") };
                    state = next;
                    times.entry((at + 1) / BUCKET * BUCKET).or_default().push(time);
                }
                n_items = n_items.max(engine.n_items());
                end.push((engine.viable(state).clone(), engine.is_sentence(state)));
            }
            ends.push(end);
            let points: BTreeMap<usize, f64> = times
                .iter()
                .filter(|(_, times)| times.len() >= 5)
                .map(|(&n, times)| (n, median(times)))
                .collect();
            curves.push(Curve { text: name.into(), engine: (*engine_name).into(), points, n_items });
        }
        if ends[0] != ends[1] {
            bail!("{name}: the two normal forms differ");
        }
    }
    let at = [20, 40, 100, 320, 640, 1_000, 1_980];
    let rows: Vec<Vec<String>> = curves
        .iter()
        .map(|curve| {
            let time = |n| curve.points.range(..=n).next_back().filter(|&(&m, _)| m + BUCKET > n);
            let times = at.iter().map(|&n| time(n).map_or("-".into(), |(_, &time)| us(time)));
            [curve.text.clone(), curve.engine.clone()].into_iter().chain(times).collect()
        })
        .collect();
    let columns: Vec<String> = at.iter().map(|n| format!("n = {n}")).collect();
    let columns: Vec<&str> =
        ["text", "engine"].into_iter().chain(columns.iter().map(String::as_str)).collect();
    print_table("A step (extend by a piece), CPU microseconds, median", &columns, &rows);
    Ok(curves)
}

fn masks(args: &Args) -> Result<Vec<Masks>> {
    let vocabulary = args.shared.join("data/tokenizers/qwen.tiktoken.gz");
    if !vocabulary.exists() {
        return Ok(vec![]);
    }
    let options = LoadOptions { eos: vec![151_643], ..LoadOptions::default() };
    let (vocabulary, vocabulary_us) = timed(|| Vocabulary::from_file(&vocabulary, &options));
    let vocabulary = vocabulary?;
    let mut all = Vec::new();
    for name in ["treebank_raw", "sql_grammar"] {
        for engine in [Engine::Valiant, Engine::Earley] {
            let file = |extension: &str| args.shared.join("data/replay").join(format!("{name}.{extension}"));
            let compiler = Compiler::default().engine(engine);
            let (language, compile_us) = timed(|| input::language(&file("lark"), &compiler));
            let language = language?;
            let texts: Vec<_> = input::texts(&file("tok.jsonl"))?.into_iter().take(40).collect();
            let (parser_step_us, parser_init_us) = parser(&language, &texts)?;
            let (constraint, constraint_us) =
                timed(|| Constraint::new(Arc::clone(&language), vocabulary.clone()));
            let constraint = constraint?;
            let mut matcher = constraint.matcher()?;
            let mut words = vec![0; constraint.mask_words()];
            let ((), first_mask_us) = timed(|| matcher.mask_into(&mut words).unwrap_or_default());
            let (mut mask_times, mut both_times) = (Vec::new(), Vec::new());
            // The first round fills the tables that all sequences share.
            for is_counted in [false, true] {
                for text in &texts {
                    for &token in &text.ids {
                        let (masked, mask) = timed(|| matcher.mask_into(&mut words));
                        let (advanced, advance) = timed(|| matcher.advance(TokenId(token)));
                        masked.and(advanced).map_err(|error| anyhow!("{name}: {error}"))?;
                        if is_counted {
                            mask_times.push(mask);
                            both_times.push(mask + advance);
                        }
                    }
                    if !matcher.is_sentence() {
                        bail!("{name}: a text is no sentence: {}", text.text);
                    }
                    matcher.reset();
                }
            }
            all.push(Masks {
                grammar: name.into(),
                engine: engine.name(),
                parser_step_us,
                mask_us: median(&mask_times),
                mask_p99_us: quantile(&mask_times, 0.99),
                mask_and_advance_us: median(&both_times),
                mask_and_advance_p99_us: quantile(&both_times, 0.99),
                parser_init_us,
                compile_ms: (compile_us + constraint_us) / 1e3,
                vocabulary_ms: vocabulary_us / 1e3,
                first_mask_ms: first_mask_us / 1e3,
            });
        }
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|m| {
            let (us_of, ms) = (
                [m.parser_step_us, m.mask_us, m.mask_p99_us],
                [m.compile_ms, m.vocabulary_ms, m.first_mask_ms],
            );
            let both = [m.mask_and_advance_us, m.mask_and_advance_p99_us, m.parser_init_us];
            let numbers = us_of.into_iter().chain(both).map(us).chain(ms.map(|ms| format!("{ms:.1}")));
            [m.grammar.clone(), m.engine.into()].into_iter().chain(numbers).collect()
        })
        .collect();
    let columns = [
        "grammar",
        "engine",
        "step",
        "mask p50",
        "p99",
        "+ advance p50",
        "p99",
        "parser init",
        "compile ms",
        "vocabulary ms",
        "first mask ms",
    ];
    print_table(
        "A step of the parser and a whole mask (Qwen vocabulary), CPU microseconds; initialization",
        &columns,
        &rows,
    );
    Ok(all)
}

/// The median step over the pieces of texts, and the time to make a recognizer.
fn parser(language: &Language, texts: &[input::Text]) -> Result<(f64, f64)> {
    let (mut steps, mut inits) = (Vec::new(), Vec::new());
    for text in texts {
        let Some(pieces) = input::pieces(language, &mut *language.recognizer()?, text.text.as_bytes())?
        else {
            continue;
        };
        let (engine, init) = timed(|| language.recognizer());
        let mut engine = engine?;
        inits.push(init);
        let mut state = engine.start();
        for labels in pieces {
            let edges = input::edges(state, &labels);
            let (next, time) = timed(|| engine.extend(&edges));
            steps.push(time);
            state = next?.ok_or_else(|| anyhow!("a piece is refused that was read before"))?;
        }
    }
    Ok((median(&steps), median(&inits)))
}

/// The time of a step against the number of terminals, both logarithmic.
fn draw(path: &Path, curves: &[Curve]) -> Result<()> {
    let line = |curve: &Curve| Line {
        group: curve.text.clone(),
        label: format!("{}, {}", curve.text, curve.engine),
        is_dashed: curve.engine != "valiant",
        points: curve.points.iter().map(|(&n, &time)| (n as f64, time)).collect(),
    };
    let lines: Vec<Line> = curves.iter().filter(|curve| curve.engine != "valiant, CNF").map(line).collect();
    draw::lines(path, "terminals before the step", "a step, µs of CPU time (median)", &lines)
}
