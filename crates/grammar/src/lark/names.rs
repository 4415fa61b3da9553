//! Who is called what: definitions, imports, `%override` and `%extend`, as python-lark 1.3.1 has them.
//!
//! Each import of a file is a [`Scope`]: its definitions get the names that are asked for, or else the name
//! of the file before their own (`file__rule`, `FILE__NAME`, `_file__rule`; Lark writes `file` in both), and
//! then whatever the importing file makes of that. So two files that import a third have two copies of it. In
//! a scope imports come first, then definitions in their order; what is not needed for the names that are
//! asked for is left out. Therefore:
//!
//! - An overridden rule is overridden for the imported rules that name it, too. A terminal is what its parts
//!   were when its file was read, as in Lark: overriding a part later does not change it, extending does.
//! - `%ignore` and other directives count in the grammar itself only, not in files that it imports.
//!
//! Imports are walked with a stack of our own. A scope costs the size of its file, paid from the [`Budget`].

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

use super::ast::{Attributes, Change, Expansions, File, Item, Name, NodeKind, Path, Stop};
use super::files::{FileId, Files};
use super::library;
use crate::diagnostic::{ErrorKind, GrammarError, closest};
use crate::expand::Budget;
use crate::ir::Span;

/// The position of a scope; the grammar itself is the first.
pub(crate) type ScopeId = usize;

/// One import of a file.
pub(crate) struct Scope<'f> {
    pub file: FileId,
    /// The scope of the file that imports this one.
    parent: Option<ScopeId>,
    /// What goes before names that are not asked for.
    prefix: String,
    /// What the importing file calls the names that it asks for.
    aliases: HashMap<(bool, &'f str), &'f str>,
    /// Where the grammar itself imports it.
    position: usize,
    /// The terminals that the terminals of the file name.
    pub parts: HashMap<&'f str, usize>,
}

/// A rule or a template.
pub(crate) struct Rule<'f> {
    pub name: String,
    pub parameters: &'f [Name<'f>],
    /// The positions of the parameters by name.
    pub numbers: HashMap<&'f str, usize>,
    /// The right sides with the scopes of their names: the definition, then the extensions.
    pub bodies: Vec<(ScopeId, &'f Expansions)>,
    /// What stands in brackets behind the name.
    pub attributes: Option<&'f Attributes>,
    /// Only declared.
    pub is_abstract: bool,
    pub span: Span,
}

/// A terminal.
pub(crate) struct Terminal<'f> {
    pub name: String,
    pub priority: i32,
    /// Not so with `%anonymous`.
    pub declared: bool,
    /// From a library.
    pub library: Option<&'static str>,
    /// The right sides with the scopes of their names: the definition, then the extensions.
    pub bodies: Vec<(ScopeId, &'f Expansions)>,
    /// Only declared.
    pub is_abstract: bool,
    /// Where the name stands that defines or imports it.
    pub span: Span,
    /// Where the grammar itself declares or imports it.
    pub position: usize,
    /// How many tokens may have bytes in a piece of it.
    pub max_tokens: Option<NonZeroU32>,
}

/// The right side of a terminal, its priority, whether it is declared, and its bound on tokens.
type Defined<'f> = (Option<(ScopeId, &'f Expansions)>, i32, bool, Option<NonZeroU32>);

/// The definitions with a name, in order.
#[derive(Default)]
pub(crate) struct Table {
    pub order: Vec<usize>,
    places: HashMap<String, usize>,
}

impl Table {
    pub fn get(&self, name: &str) -> Option<usize> {
        self.places.get(name).map(|&place| self.order[place])
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// Adds a definition, in the place of the one with this name if there is one.
    fn set(&mut self, name: String, definition: usize) {
        match self.places.get(&name) {
            Some(&place) => self.order[place] = definition,
            None => {
                self.places.insert(name, self.order.len());
                self.order.push(definition);
            }
        }
    }
}

/// The definitions that a scope sees.
#[derive(Default)]
pub(crate) struct Dictionary {
    pub rules: Table,
    pub terminals: Table,
}

/// All definitions.
pub(crate) struct Names<'f> {
    files: &'f Files<'f>,
    trees: &'f [File<'f>],
    pub scopes: Vec<Scope<'f>>,
    pub rules: Vec<Rule<'f>>,
    pub terminals: Vec<Terminal<'f>>,
}

/// What is imported from one place.
struct Import<'f> {
    path: &'f Path<'f>,
    span: Span,
    names: Vec<(&'f Name<'f>, Option<&'f Name<'f>>)>,
}

/// A scope whose imports are not all done.
struct Open<'f> {
    scope: ScopeId,
    imports: Vec<Import<'f>>,
    next: usize,
    dictionary: Dictionary,
}

type Result<T> = std::result::Result<T, GrammarError>;

impl<'f> Names<'f> {
    /// The definitions of all files, and those that the grammar itself sees.
    pub fn collect(
        files: &'f Files<'f>,
        trees: &'f [File<'f>],
        budget: &mut Budget,
    ) -> Result<(Self, Dictionary)> {
        let mut names = Self { files, trees, scopes: Vec::new(), rules: Vec::new(), terminals: Vec::new() };
        let (aliases, parts) = (HashMap::new(), HashMap::new());
        names.scopes.push(Scope {
            file: 0,
            parent: None,
            prefix: String::new(),
            aliases,
            position: 0,
            parts,
        });
        let mut stack = vec![names.open(0)];
        loop {
            let top = stack.last_mut().expect("the outermost scope is left below");
            if let Some(import) = top.imports.get(top.next) {
                top.next += 1;
                match import.path {
                    Path::Library(library) => names.import_library(library, top.next - 1, top, budget)?,
                    Path::File(path) => {
                        let file = files.imported(names.scopes[top.scope].file, path);
                        let scope = names.import_file(file, path.join("__"), import, top.scope)?;
                        let span = import.span.clone();
                        if stack.iter().any(|open| names.scopes[open.scope].file == file) {
                            return Err(names.cyclic(file, span));
                        }
                        budget.spend(1 + trees[file].nodes.len() + trees[file].items.len(), &span)?;
                        stack.push(names.open(scope));
                    }
                }
                continue;
            }
            let mut done = stack.pop().expect("looked at above");
            names.define_all(&mut done, budget)?;
            names.bind_parts(&done, budget)?;
            match stack.last_mut() {
                Some(importer) => names.merge(done, importer, budget)?,
                None => return Ok((names, done.dictionary)),
            }
        }
    }

    fn cyclic(&self, file: FileId, span: Span) -> GrammarError {
        let name = if file == 0 { "the grammar" } else { self.files.name(file) };
        GrammarError::new(ErrorKind::Io, span, format!("`{name}` is imported by itself"))
            .with_help("put what both files need into a third one")
    }

    /// A scope with its imports, those from the same place together.
    fn open(&self, scope: ScopeId) -> Open<'f> {
        let mut imports: Vec<Import<'f>> = Vec::new();
        let mut places = HashMap::new();
        for item in &self.trees[self.scopes[scope].file].items {
            let Item::Import { path, path_span, name, alias } = item else { continue };
            let at = *places.entry(path).or_insert(imports.len());
            if at == imports.len() {
                imports.push(Import { path, span: path_span.clone(), names: Vec::new() });
            }
            imports[at].names.push((name, alias.as_ref()));
        }
        Open { scope, imports, next: 0, dictionary: Dictionary::default() }
    }

    /// What a name of a scope is called in the grammar itself.
    pub fn global(&self, scope: ScopeId, name: &str, terminal: bool, budget: &mut Budget) -> Result<String> {
        let mut name = name.to_owned();
        let mut at = &self.scopes[scope];
        while let Some(parent) = at.parent {
            name = match at.aliases.get(&(terminal, &name)) {
                Some(&alias) => alias.to_owned(),
                None => {
                    let prefix = if terminal { at.prefix.to_uppercase() } else { at.prefix.to_lowercase() };
                    match name.strip_prefix('_') {
                        Some(rest) => format!("_{prefix}__{rest}"),
                        None => format!("{prefix}__{name}"),
                    }
                }
            };
            budget.spend(name.len() / 64, &(at.position..at.position))?;
            at = &self.scopes[parent];
        }
        Ok(name)
    }

    /// Where the grammar itself defines what stands at a place of a scope.
    fn position(&self, scope: ScopeId, at: usize) -> usize {
        if scope == 0 { at } else { self.scopes[scope].position }
    }

    fn import_library(
        &mut self,
        library: &str,
        at: usize,
        open: &mut Open<'f>,
        budget: &mut Budget,
    ) -> Result<()> {
        let import = &open.imports[at];
        let Some(definitions) = library::named(library) else {
            let message = format!("importing from `{library}` is not supported");
            let help = format!(
                "the libraries `common` and `unicode` are built in; `%import .{library}.NAME` reads a file \
                 beside this one"
            );
            return Err(
                GrammarError::new(ErrorKind::Unsupported, import.span.clone(), message).with_help(help)
            );
        };
        for &(name, alias) in &import.names {
            let Some(pattern) = library::find(definitions, &name.text) else {
                let message = format!("the library `{library}` has no `{}`", name.text);
                let error = GrammarError::new(ErrorKind::Syntax, name.span.clone(), message);
                return Err(match closest(&name.text, definitions.iter().map(|&(known, _)| known)) {
                    Some(near) => error.with_help(format!("did you mean `{near}`?")),
                    None => error,
                });
            };
            let local = alias.unwrap_or(name);
            same_kind(name, local)?;
            let global = self.global(open.scope, &local.text, true, budget)?;
            if let Some(known) = open.dictionary.terminals.get(&global) {
                if self.terminals[known].library == Some(pattern) {
                    continue;
                }
                return Err(self.duplicate(local, &self.terminals[known].span));
            }
            let position = self.position(open.scope, local.span.start);
            open.dictionary.terminals.set(global.clone(), self.terminals.len());
            let (library, span) = (Some(pattern), local.span.clone());
            let (declared, is_abstract, bodies) = (true, false, Vec::new());
            let name = global;
            self.terminals.push(Terminal {
                name,
                priority: 0,
                declared,
                library,
                bodies,
                is_abstract,
                span,
                position,
                max_tokens: None,
            });
        }
        Ok(())
    }

    fn import_file(
        &mut self,
        file: FileId,
        prefix: String,
        import: &Import<'f>,
        parent: ScopeId,
    ) -> Result<ScopeId> {
        let mut aliases: HashMap<(bool, &'f str), &'f str> = HashMap::new();
        for &(name, alias) in &import.names {
            let local = alias.unwrap_or(name);
            same_kind(name, local)?;
            if let Some(first) = aliases.insert((name.terminal, &name.text), &local.text)
                && first != local.text
            {
                let message =
                    format!("`{}` is imported twice, as `{first}` and as `{}`", name.text, local.text);
                return Err(GrammarError::new(ErrorKind::Syntax, local.span.clone(), message)
                    .with_help(format!("define the other by the one: `{}: {first}`", local.text)));
            }
        }
        let position = self.position(parent, import.span.start);
        let parts = HashMap::new();
        self.scopes.push(Scope { file, parent: Some(parent), prefix, aliases, position, parts });
        Ok(self.scopes.len() - 1)
    }

    /// Takes over what is asked for from a scope that is done, with everything that it needs.
    fn merge(&self, done: Open<'f>, importer: &mut Open<'f>, budget: &mut Budget) -> Result<()> {
        let import = &importer.imports[importer.next - 1];
        let Dictionary { rules, terminals } = &done.dictionary;
        let mut agenda = Vec::new();
        for &(name, _) in &import.names {
            let global = self.global(done.scope, &name.text, name.terminal, budget)?;
            let found = if name.terminal { terminals.get(&global) } else { rules.get(&global) };
            let Some(found) = found else { return Err(self.missing(name, done.scope)) };
            agenda.push((name.terminal, found));
        }
        let mut needed: HashSet<(bool, usize)> = agenda.iter().copied().collect();
        while let Some((terminal, at)) = agenda.pop() {
            // Terminals have found their parts already.
            let bodies = if terminal { &[][..] } else { &self.rules[at].bodies[..] };
            for &(scope, body) in bodies {
                budget.spend(body.nodes.len(), &import.span)?;
                for node in &self.trees[self.scopes[scope].file].nodes[body.nodes.clone()] {
                    let found = match &node.kind {
                        NodeKind::Rule(name) if self.rules[at].numbers.contains_key(name.as_ref()) => {
                            continue;
                        }
                        NodeKind::Rule(name) => (false, rules.get(&self.global(scope, name, false, budget)?)),
                        NodeKind::Terminal(name) => {
                            (true, terminals.get(&self.global(scope, name, true, budget)?))
                        }
                        _ => continue,
                    };
                    if let (terminal, Some(found)) = found
                        && needed.insert((terminal, found))
                    {
                        agenda.push((terminal, found));
                    }
                }
            }
        }
        let taken = |name: &str, first: Span| {
            let message = format!("`{name}` is imported here, but defined already");
            GrammarError::new(ErrorKind::Syntax, import.span.clone(), message)
                .with_label(first, "first defined here")
                .with_help("give it another name: `%import .file.name -> other`")
        };
        for &at in rules.order.iter().filter(|&&at| needed.contains(&(false, at))) {
            let name = &self.rules[at].name;
            if let Some(first) = importer.dictionary.rules.get(name) {
                return Err(taken(name, self.rules[first].span.clone()));
            }
            importer.dictionary.rules.set(name.clone(), at);
        }
        for &at in terminals.order.iter().filter(|&&at| needed.contains(&(true, at))) {
            let name = &self.terminals[at].name;
            if let Some(first) = importer.dictionary.terminals.get(name) {
                return Err(taken(name, self.terminals[first].span.clone()));
            }
            importer.dictionary.terminals.set(name.clone(), at);
        }
        Ok(())
    }

    fn missing(&self, name: &Name<'_>, scope: ScopeId) -> GrammarError {
        let file = self.scopes[scope].file;
        let message = format!("`{}` has no `{}`", self.files.name(file), name.text);
        let error = GrammarError::new(ErrorKind::Syntax, name.span.clone(), message);
        let defined = self.trees[file].items.iter().filter_map(|item| match item {
            Item::Rule { name, .. } | Item::Terminal { name, .. } => Some(name.text.as_ref()),
            _ => None,
        });
        match closest(&name.text, defined) {
            Some(near) => error.with_help(format!("did you mean `{near}`?")),
            None => error,
        }
    }

    /// The definitions of the file itself, after its imports.
    fn define_all(&mut self, open: &mut Open<'f>, budget: &mut Budget) -> Result<()> {
        let scope = open.scope;
        for item in &self.trees[self.scopes[scope].file].items {
            match item {
                Item::Rule { name, parameters, body, change, attributes } => {
                    let global = self.global(scope, &name.text, false, budget)?;
                    let known = open.dictionary.rules.get(&global);
                    let first = known.map(|at| self.rules[at].span.clone());
                    self.check_change(name, *change, first)?;
                    if let (Change::Extend, Some(at)) = (change, known) {
                        let of = self.rules[at].attributes.or(attributes.as_deref());
                        if of.is_some_and(|of| of.stop.is_some() || of.max_tokens.is_some()) {
                            let message = "a rule with attributes cannot be extended";
                            return Err(GrammarError::new(
                                ErrorKind::Unsupported,
                                name.span.clone(),
                                message,
                            ));
                        }
                        self.extend_rule(at, name, parameters, (scope, body))?;
                        continue;
                    }
                    open.dictionary.rules.set(global.clone(), self.rules.len());
                    let (bodies, span) = (vec![(scope, body)], name.span.clone());
                    let numbers =
                        parameters.iter().enumerate().map(|(at, name)| (name.text.as_ref(), at)).collect();
                    self.rules.push(Rule {
                        name: global,
                        parameters,
                        numbers,
                        bodies,
                        attributes: attributes.as_deref(),
                        is_abstract: false,
                        span,
                    });
                }
                Item::Nonterminal { name } | Item::Declare { name } if !name.terminal => {
                    let global = self.global(scope, &name.text, false, budget)?;
                    let known = open.dictionary.rules.get(&global);
                    self.check_change(name, Change::Define, known.map(|at| self.rules[at].span.clone()))?;
                    open.dictionary.rules.set(global.clone(), self.rules.len());
                    let is_abstract = matches!(item, Item::Declare { .. });
                    let (bodies, span) = (Vec::new(), name.span.clone());
                    let (parameters, numbers): (&[Name<'_>], _) = (&[], HashMap::new());
                    let (name, attributes) = (global, None);
                    self.rules.push(Rule {
                        name,
                        parameters,
                        numbers,
                        bodies,
                        attributes,
                        is_abstract,
                        span,
                    });
                }
                Item::Terminal { name, priority, body, change, declared, max_tokens } => {
                    let terminal = (Some((scope, body)), *priority, *declared, *max_tokens);
                    self.define_terminal(open, name, *change, terminal, budget)?;
                }
                Item::Declare { name } => {
                    self.define_terminal(open, name, Change::Define, (None, 0, true, None), budget)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn extend_rule(
        &mut self,
        at: usize,
        name: &Name<'_>,
        parameters: &[Name<'_>],
        body: (ScopeId, &'f Expansions),
    ) -> Result<()> {
        let rule = &mut self.rules[at];
        if rule.is_abstract {
            return Err(is_abstract(name, &rule.span));
        }
        let mut pairs = parameters.iter().zip(rule.parameters);
        if parameters.len() != rule.parameters.len() || pairs.any(|(a, b)| a.text != b.text) {
            let message = format!("`{}` is extended with other parameters", name.text);
            return Err(GrammarError::new(ErrorKind::Syntax, name.span.clone(), message)
                .with_label(rule.span.clone(), "its definition")
                .with_help("an extension repeats the parameters of the template"));
        }
        rule.bodies.push(body);
        Ok(())
    }

    fn define_terminal(
        &mut self,
        open: &mut Open<'f>,
        name: &Name<'f>,
        change: Change,
        (body, priority, declared, max_tokens): Defined<'f>,
        budget: &mut Budget,
    ) -> Result<()> {
        let global = self.global(open.scope, &name.text, true, budget)?;
        let known = open.dictionary.terminals.get(&global);
        self.check_change(name, change, known.map(|at| self.terminals[at].span.clone()))?;
        if let (Change::Extend, Some(at), Some(body)) = (change, known, body) {
            let terminal = &mut self.terminals[at];
            if terminal.is_abstract {
                return Err(is_abstract(name, &terminal.span));
            }
            terminal.bodies.push(body);
            return Ok(());
        }
        open.dictionary.terminals.set(global.clone(), self.terminals.len());
        let position = self.position(open.scope, name.span.start);
        let (library, bodies, is_abstract) = (None, body.into_iter().collect(), body.is_none());
        let (name, span) = (global, name.span.clone());
        self.terminals.push(Terminal {
            name,
            priority,
            declared,
            library,
            bodies,
            is_abstract,
            span,
            position,
            max_tokens,
        });
        Ok(())
    }

    fn check_change(&self, name: &Name<'_>, change: Change, first: Option<Span>) -> Result<()> {
        let verb = match (change, first) {
            (Change::Define, Some(first)) => return Err(self.duplicate(name, &first)),
            (Change::Override, None) => "override",
            (Change::Extend, None) => "extend",
            _ => return Ok(()),
        };
        let message = format!("there is no `{}` yet to {verb}", name.text);
        Err(GrammarError::new(ErrorKind::Syntax, name.span.clone(), message)
            .with_help(format!("import or define it before, or leave out `%{verb}`")))
    }

    fn duplicate(&self, name: &Name<'_>, known: &Span) -> GrammarError {
        let message = format!("`{}` is defined twice", name.text);
        // Imports are known first, wherever they stand.
        let same_file = self.files.file_at(known.start) == self.files.file_at(name.span.start);
        let later = same_file && name.span.start < known.start;
        let (first, second) = if later { (&name.span, known) } else { (known, &name.span) };
        GrammarError::new(ErrorKind::Syntax, second.clone(), message)
            .with_label(first.clone(), "first defined here")
            .with_help(
                "join the two with `|`, rename one, or write `%override` or `%extend` before the second",
            )
    }

    /// Finds the parts of all terminals of a file. One that is not there is an error when it is needed.
    fn bind_parts(&mut self, done: &Open<'f>, budget: &mut Budget) -> Result<()> {
        let tree = &self.trees[self.scopes[done.scope].file];
        let mut parts = HashMap::new();
        for item in &tree.items {
            let mut bodies = Vec::new();
            match item {
                Item::Terminal { body, .. } | Item::Ignore { body } | Item::Reserve { body } => {
                    bodies.push(body);
                }
                Item::Rule { body, attributes: Some(attributes), .. } => {
                    bodies.push(body);
                    if let Some(Stop::Suffix(end) | Stop::TakenBack(end)) = &attributes.stop {
                        bodies.push(end);
                    }
                }
                _ => continue,
            }
            for node in bodies.into_iter().flat_map(|body| &tree.nodes[body.nodes.clone()]) {
                if let NodeKind::Terminal(name) = &node.kind
                    && !parts.contains_key(name.as_ref())
                    && let Some(part) =
                        done.dictionary.terminals.get(&self.global(done.scope, name, true, budget)?)
                {
                    parts.insert(name.as_ref(), part);
                }
            }
        }
        self.scopes[done.scope].parts = parts;
        Ok(())
    }
}

/// What is imported as a rule stays a rule, and a terminal a terminal.
fn same_kind(name: &Name<'_>, alias: &Name<'_>) -> Result<()> {
    if name.terminal == alias.terminal {
        return Ok(());
    }
    let message = match name.terminal {
        true => format!("`{}` is a terminal: its name is upper case", name.text),
        false => format!("`{}` is a rule: its name is lower case", name.text),
    };
    Err(GrammarError::new(ErrorKind::Syntax, alias.span.clone(), message))
}

fn is_abstract(name: &Name<'_>, first: &Span) -> GrammarError {
    let message = format!("`{}` is only declared: there is nothing to extend", name.text);
    GrammarError::new(ErrorKind::Unsupported, name.span.clone(), message)
        .with_label(first.clone(), "declared here")
        .with_help("define it instead")
}
