//! The public interface of the crate `anygram`, as a listing in the repository: a change of it is a change of
//! `docs/api.txt`, which somebody reads.
//!
//! `anygram` only hands out what other crates define, so its items are looked up there: the `use` lines of
//! its source say where, and rustdoc's JSON says what the items have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::shorten::{map_paths, our_type, without_modules};
use crate::{cargo, root, run, target};

/// The name that `anygram` gives an item, and its path where it is defined.
type Exports = BTreeMap<String, String>;

/// The lines of each item, by the name of the item.
type Sections<'l> = BTreeMap<String, Vec<&'l String>>;

const TITLE: &str = "# The public interface of the crate `anygram`, written by `cargo xtask api`.\n";

/// Writes the listing, or compares with the one in the repository.
pub fn run_api(check: bool) -> Result<()> {
    let exports = exports()?;
    let listings = listings(&exports)?;
    let sections = sections(&exports, &listings)?;
    let known: BTreeSet<&str> = sections.keys().map(|name| last(name)).collect();
    let text = text(&sections, &exports);
    for missing in unexported(&sections, &known) {
        println!("warning: {missing}");
    }
    let file = root().join("docs/api.txt");
    if !check {
        return std::fs::write(&file, text).with_context(|| file.display().to_string());
    }
    compare(&std::fs::read_to_string(&file).unwrap_or_default(), &text)
}

/// Every item under the name that `anygram` has for it. What is in a module that is exported as a whole has
/// the name of the module before it, unless it is exported by itself too.
fn sections<'l>(exports: &Exports, listings: &'l BTreeMap<String, Vec<String>>) -> Result<Sections<'l>> {
    let mut sections = own_items(&listings["anygram"]);
    let mut in_modules: Vec<(String, Vec<&String>)> = Vec::new();
    for (name, path) in exports {
        let defining = path.split("::").next().unwrap_or_default();
        let found = found_at(&listings[defining], path);
        ensure!(!found.is_empty(), "{path} is not in the documentation of {defining}");
        for (at, lines) in found {
            match at.strip_prefix(path.as_str()).filter(|inner| !inner.is_empty()) {
                Some(inner) => in_modules.push((format!("{name}{inner}"), lines)),
                None => drop(sections.insert(name.clone(), lines)),
            }
        }
    }
    // The shortest of several names first.
    in_modules.sort_by_key(|(name, _)| (name.matches("::").count(), name.clone()));
    for (name, lines) in in_modules {
        if !sections.keys().any(|known| last(known) == last(&name)) {
            sections.insert(name, lines);
        }
    }
    Ok(sections)
}

/// The last name of a path.
fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

/// What the `pub use` lines of `anygram` say.
fn exports() -> Result<Exports> {
    let source = root().join("crates/anygram/src/lib.rs");
    let text = std::fs::read_to_string(&source).with_context(|| source.display().to_string())?;
    let mut exports = Exports::new();
    for item in syn::parse_file(&text)?.items {
        if let syn::Item::Use(item) = item
            && matches!(item.vis, syn::Visibility::Public(_))
        {
            add_tree(&item.tree, String::new(), &mut exports)?;
        }
    }
    // What another file of `anygram` defines, rustdoc lists as its own.
    exports.retain(|_, path| path.starts_with("anygram_"));
    Ok(exports)
}

fn add_tree(tree: &syn::UseTree, path: String, exports: &mut Exports) -> Result<()> {
    match tree {
        syn::UseTree::Path(tree) => add_tree(&tree.tree, format!("{path}{}::", tree.ident), exports)?,
        syn::UseTree::Name(tree) => {
            exports.insert(tree.ident.to_string(), format!("{path}{}", tree.ident));
        }
        syn::UseTree::Rename(tree) => {
            exports.insert(tree.rename.to_string(), format!("{path}{}", tree.ident));
        }
        syn::UseTree::Group(tree) => {
            tree.items.iter().try_for_each(|tree| add_tree(tree, path.clone(), exports))?;
        }
        syn::UseTree::Glob(_) => bail!("`{path}*` does not say what it exports"),
    }
    Ok(())
}

/// The listing of each crate, a line for each item.
fn listings(exports: &Exports) -> Result<BTreeMap<String, Vec<String>>> {
    let defining = exports.values().filter_map(|path| path.split("::").next()).map(str::to_owned);
    let crates: BTreeSet<String> = defining.chain(["anygram".to_owned()]).collect();
    let folder = target().join("api");
    for name in &crates {
        // The format is not stable, and the library that reads it is of the version of our compiler.
        let mut command = cargo();
        command.args(["rustdoc", "--quiet", "--lib", "--package", &name.replace('_', "-"), "--target-dir"]);
        command.arg(&folder).args(["--", "-Zunstable-options", "--output-format", "json"]);
        run(command.env("RUSTC_BOOTSTRAP", "1"))?;
    }
    crates
        .into_iter()
        .map(|name| Ok((name.clone(), listing(folder.join(format!("doc/{name}.json")))?)))
        .collect()
}

fn listing(json: PathBuf) -> Result<Vec<String>> {
    let api = public_api::Builder::from_rustdoc_json(&json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| json.display().to_string())?;
    Ok(api.items().map(ToString::to_string).collect())
}

/// If a line begins an item of a module, the path of that item.
fn header(line: &str) -> Option<String> {
    let (_, item) = line.split_once("pub ")?;
    let item =
        ["const fn ", "unsafe ", "async "].iter().find_map(|word| item.strip_prefix(word)).map_or_else(
            || item.to_owned(),
            |rest| if item.starts_with("const") { format!("fn {rest}") } else { rest.to_owned() },
        );
    let (kind, rest) = item.split_once(' ')?;
    let path = without_parameters(rest);
    match kind {
        "struct" | "enum" | "trait" | "union" | "mod" | "use" | "macro" => Some(path),
        // What belongs to a type has its name before it.
        "fn" | "const" | "static" | "type" => {
            let owner = path.rsplit("::").nth(1).unwrap_or_default();
            (!owner.starts_with(|c: char| c.is_ascii_uppercase())).then_some(path)
        }
        _ => None,
    }
}

/// The path that a text begins with, without parameters of types: `a::B::c` of `a::B<'_>::c(&self)`.
fn without_parameters(text: &str) -> String {
    let (mut path, mut depth) = (String::new(), 0_usize);
    for c in text.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            c if depth == 0 && (c.is_ascii_alphanumeric() || matches!(c, '_' | ':')) => path.push(c),
            _ if depth == 0 => break,
            _ => {}
        }
    }
    path.trim_end_matches(':').to_owned()
}

/// The items at a path, and those in it if it is a module: each with its lines, the first of which names it.
fn found_at<'l>(listing: &'l [String], path: &str) -> Vec<(String, Vec<&'l String>)> {
    let mut found: Vec<(String, Vec<&String>)> = Vec::new();
    let mut is_inside = false;
    for line in listing {
        if let Some(at) = header(line) {
            let is_module = line.contains("pub mod ") || line.contains("pub use ");
            is_inside = !is_module
                && (at == path || at.strip_prefix(path).is_some_and(|rest| rest.starts_with("::")));
            if is_inside {
                found.push((at, Vec::new()));
            }
        }
        if let Some((_, lines)) = found.last_mut().filter(|_| is_inside) {
            lines.push(line);
        }
    }
    found
}

/// What `anygram` defines itself.
fn own_items(listing: &[String]) -> Sections<'_> {
    let own = found_at(listing, "anygram").into_iter();
    own.filter_map(|(at, lines)| Some((at.strip_prefix("anygram::")?.to_owned(), lines))).collect()
}

/// The listing: items by name, each with what it has.
fn text(sections: &Sections<'_>, exports: &Exports) -> String {
    let mut text = TITLE.to_owned();
    for (name, lines) in sections {
        let mut members = BTreeSet::new();
        let mut in_trait_impl = false;
        for line in &lines[1..] {
            let is_impl = line.starts_with("impl") || line.starts_with("unsafe impl");
            if is_impl {
                in_trait_impl = line.contains(" for ");
            }
            // The methods of a trait are known from the trait, and an `impl` without one says nothing.
            if is_impl == in_trait_impl || line.contains("pub type ") {
                members.insert(map_paths(line, without_modules));
            }
        }
        let module =
            name.rsplit_once("::").map(|(module, _)| module).filter(|module| exports.contains_key(*module));
        let module = module.map_or(String::new(), |module| format!("  # in {module}"));
        text += &format!("\n{}{module}\n", map_paths(lines[0], without_modules));
        members.iter().for_each(|member| text += &format!("{member}\n"));
    }
    text
}

/// Types of ours that signatures need and that `anygram` does not export.
fn unexported(sections: &Sections<'_>, known: &BTreeSet<&str>) -> Vec<String> {
    let mut missing: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (name, lines) in sections {
        for line in lines {
            map_paths(line, |path| {
                if let Some((defining, found)) = our_type(path)
                    && !known.contains(found)
                {
                    missing.entry(format!("{defining}::…::{found}")).or_default().insert(name);
                }
                String::new()
            });
        }
    }
    let line = |(path, users): (String, BTreeSet<&str>)| {
        format!("{path} is not exported; it is in {}", users.into_iter().collect::<Vec<_>>().join(", "))
    };
    missing.into_iter().map(line).collect()
}

fn compare(old: &str, new: &str) -> Result<()> {
    let (before, after): (BTreeSet<&str>, BTreeSet<&str>) = (old.lines().collect(), new.lines().collect());
    before.difference(&after).for_each(|line| println!("- {line}"));
    after.difference(&before).for_each(|line| println!("+ {line}"));
    ensure!(old == new, "docs/api.txt is not the public interface; to accept the change: cargo xtask api");
    println!("docs/api.txt is the public interface");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_and_what_belongs_to_them() {
        for (line, path) in [
            ("pub struct a::b::C<'a>", Some("a::b::C")),
            ("#[non_exhaustive] pub enum a::D", Some("a::D")),
            ("pub fn a::b::f<T: Send>(&mut [a::b::C]) -> T", Some("a::b::f")),
            ("pub const a::MAX: usize", Some("a::MAX")),
            ("pub const fn a::b::C::new(usize) -> Self", None),
            ("pub fn a::b::C<'a>::new(&'a str) -> Self", None),
            ("pub a::b::C::field: u32", None),
            ("impl core::fmt::Debug for a::D", None),
        ] {
            assert_eq!(header(line).as_deref(), path, "{line}");
        }
    }
}
