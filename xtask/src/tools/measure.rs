//! How long functions, files and lines are: what `CONTRIBUTING.md` promises, of the files that git knows.
//!
//! A function is counted from its signature to its closing brace, without its comment; what stands in it,
//! closures and functions, is part of it. Functions with `#[test]`, in modules with `#[cfg(test)]` and in
//! folders named `tests` are counted apart.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::{output_of, root};

/// What 99 of 100 functions of a library have at most.
const MAX_FUNCTION_P99: usize = 60;
/// Columns of a line.
const MAX_COLUMNS: usize = 110;
/// How many of the longest are printed.
const LONGEST: usize = 10;

/// Something with a length, in lines.
struct Measured {
    lines: usize,
    /// `file:line name`
    place: String,
}

/// Prints the measures; fails where code is longer than it may be.
pub fn run() -> Result<()> {
    let files = tracked_files()?;
    let (mut library, mut tests, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    let mut long_lines = LongLines::default();
    for name in &files {
        let Some(extension) = Path::new(name).extension().and_then(|extension| extension.to_str()) else {
            continue;
        };
        if !["rs", "cu", "cuh", "md"].contains(&extension) {
            continue;
        }
        let text = std::fs::read_to_string(root().join(name)).with_context(|| name.clone())?;
        long_lines.look(name, &text, extension == "md");
        if extension == "rs" {
            sizes.push(Measured { lines: text.lines().count(), place: name.clone() });
            let mut functions = Functions::new(name);
            functions.visit_file(&syn::parse_file(&text).with_context(|| name.clone())?);
            library.append(&mut functions.library);
            tests.append(&mut functions.tests);
        }
    }
    let p99 = report("functions", &mut library);
    report("test functions", &mut tests);
    report("files", &mut sizes);
    println!("{long_lines}");
    ensure!(p99 <= MAX_FUNCTION_P99, "99 of 100 functions may have {MAX_FUNCTION_P99} lines, not {p99}");
    ensure!(
        long_lines.code.is_empty(),
        "{} lines of code have more than {MAX_COLUMNS} columns",
        long_lines.code.len()
    );
    Ok(())
}

/// The files in git that are there.
fn tracked_files() -> Result<Vec<String>> {
    let mut command = std::process::Command::new("git");
    let listing = output_of(command.current_dir(root()).args(["ls-files", "-z"]))?;
    let names = listing.split('\0').filter(|name| !name.is_empty() && root().join(name).is_file());
    Ok(names.map(str::to_owned).collect())
}

/// Prints a table of lengths; tells what 99 of 100 have at most.
fn report(what: &str, found: &mut [Measured]) -> usize {
    found.sort_by(|one, other| (one.lines, &other.place).cmp(&(other.lines, &one.place)));
    let at = |percent: usize| found.get((found.len().max(1) - 1) * percent / 100).map_or(0, |one| one.lines);
    let mut text = format!(
        "{} {what}: p50 {}, p90 {}, p99 {}, max {} lines; the longest:\n",
        found.len(),
        at(50),
        at(90),
        at(99),
        at(100)
    );
    for one in found.iter().rev().take(LONGEST) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {:5}  {}", one.lines, one.place);
    }
    println!("{text}");
    at(99)
}

/// The functions of a file.
struct Functions<'n> {
    file: &'n str,
    library: Vec<Measured>,
    tests: Vec<Measured>,
    /// Whether what is looked at is only there for tests.
    in_tests: bool,
}

impl<'n> Functions<'n> {
    fn new(file: &'n str) -> Self {
        let in_tests = file.split('/').any(|part| matches!(part, "tests" | "tests.rs"));
        Self { file, library: Vec::new(), tests: Vec::new(), in_tests }
    }

    fn add(&mut self, signature: &syn::Signature, block: &syn::Block, attributes: &[syn::Attribute]) {
        let start = signature.span().start().line;
        let lines = block.span().end().line - start + 1;
        let measured = Measured { lines, place: format!("{}:{start} {}", self.file, signature.ident) };
        let is_test = self.in_tests || attributes.iter().any(|attribute| attribute.path().is_ident("test"));
        if is_test { &mut self.tests } else { &mut self.library }.push(measured);
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let outside = self.in_tests;
        self.in_tests |= module.attrs.iter().any(is_for_tests);
        visit::visit_item_mod(self, module);
        self.in_tests = outside;
    }

    // What stands in a function is part of it and not counted again.
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, &function.block, &function.attrs);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig, &function.block, &function.attrs);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig, block, &function.attrs);
        }
    }
}

/// `#[cfg(test)]`
fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let condition = attribute.parse_args::<syn::Path>();
    attribute.path().is_ident("cfg") && condition.is_ok_and(|condition| condition.is_ident("test"))
}

/// Lines with more than [`MAX_COLUMNS`] columns.
#[derive(Default)]
struct LongLines {
    /// `file:line`
    code: Vec<String>,
    n_prose: usize,
}

impl LongLines {
    /// Tables and addresses cannot be broken, in prose and in comments.
    fn look(&mut self, name: &str, text: &str, is_prose: bool) {
        for (at, line) in text.lines().enumerate().filter(|(_, line)| line.chars().count() > MAX_COLUMNS) {
            let words = line.trim_start().trim_start_matches(['/', '!']).trim_start();
            let is_comment = is_prose || words.len() < line.trim_start().len();
            match is_comment && (words.starts_with('|') || line.contains("://")) {
                true => {}
                false if is_prose => self.n_prose += 1,
                false => self.code.push(format!("{name}:{}", at + 1)),
            }
        }
    }
}

impl std::fmt::Display for LongLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n_code = self.code.len();
        write!(f, "lines of more than {MAX_COLUMNS} columns: {n_code} of code, {} of prose", self.n_prose)?;
        self.code.iter().try_for_each(|place| write!(f, "\n         {place}"))
    }
}
