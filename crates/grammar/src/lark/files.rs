//! The grammar and the files that it imports, as one text.
//!
//! Files stand one after the other, the grammar first, so that a place tells its file. A file is read only
//! from the folder that the caller named ([`LarkOptions::imports`](super::LarkOptions::imports)) or one below
//! it: `%import` can write neither `..` nor an absolute path, and links that lead outside are refused. Each
//! file is read once, however often it is imported. At most [`MAX_FILES`] files of [`MAX_BYTES`] bytes
//! together are read.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::LarkDialect;
use super::ast::{self, Item};
use super::parser;
use crate::diagnostic::{self, ErrorKind, GrammarError, ImportedFile};
use crate::ir::Span;

/// How many files one grammar may import.
const MAX_FILES: usize = 64;
/// How many bytes these may have together.
const MAX_BYTES: u64 = 16 << 20;

/// The position of a file; the grammar is the first.
pub(crate) type FileId = usize;

/// A path below the folder, as names of folders and of a file without its ending.
type Names = Vec<String>;

/// All that is read.
pub(crate) struct Files<'s> {
    /// All texts, with a line end after each but the last.
    pub text: Cow<'s, str>,
    parts: Vec<Part>,
    by_names: HashMap<Names, FileId>,
    dialect: LarkDialect,
}

struct Part {
    names: Names,
    /// For messages.
    name: String,
    span: Span,
}

type Result<T> = std::result::Result<T, GrammarError>;

impl<'s> Files<'s> {
    /// Reads all files that the grammar imports, and those that they import.
    pub fn load(source: &'s str, folder: Option<&Path>, dialect: LarkDialect) -> Result<Self> {
        let grammar = Part { names: vec![String::new()], name: String::new(), span: 0..source.len() };
        let (text, by_names) = (Cow::Borrowed(source), HashMap::new());
        let mut files = Self { text, parts: vec![grammar], by_names, dialect };
        let mut left = MAX_BYTES;
        let mut at = 0;
        while at < files.parts.len() {
            // What a file imports has to be known before all texts are: it is parsed once more, with the
            // others.
            for (names, span) in files.imports_of(at)? {
                if !files.by_names.contains_key(&names) {
                    files.read(names, &span, folder, &mut left).map_err(|error| files.locate(error))?;
                }
            }
            at += 1;
        }
        Ok(files)
    }

    /// A grammar that is a part of a text, and its tree. It imports no files.
    pub fn within(text: &'s str, part: Span, dialect: LarkDialect) -> Result<(Self, ast::File<'s>)> {
        let tree = parser::parse(text, part, dialect)?;
        let file = |item: &Item<'_>| match item {
            Item::Import { path: ast::Path::File(_), path_span, .. } => Some(path_span.clone()),
            _ => None,
        };
        if let Some(span) = tree.items.iter().find_map(file) {
            let message = "a grammar within a grammar imports no files";
            return Err(GrammarError::new(ErrorKind::Unsupported, span, message)
                .with_help("import in the grammar around it, or copy the definitions"));
        }
        let grammar = Part { names: vec![String::new()], name: String::new(), span: 0..text.len() };
        let (text, by_names) = (Cow::Borrowed(text), HashMap::new());
        Ok((Self { text, parts: vec![grammar], by_names, dialect }, tree))
    }

    /// The paths below the folder that a file imports from, and where it says so.
    fn imports_of(&self, file: FileId) -> Result<Vec<(Names, Span)>> {
        let of_item = |item: &Item<'_>| match item {
            Item::Import { path: ast::Path::File(path), path_span, .. } => {
                Some((self.names(file, path), path_span.clone()))
            }
            _ => None,
        };
        Ok(self.parse(file)?.items.iter().filter_map(of_item).collect())
    }

    /// A path below the folder, from one that is relative to a file.
    fn names(&self, file: FileId, path: &[Cow<'_, str>]) -> Names {
        let names = &self.parts[file].names;
        let folder = names[..names.len() - 1].iter().cloned();
        folder.chain(path.iter().map(|name| name.to_string())).collect()
    }

    /// The tree of a file.
    pub fn parse(&self, file: FileId) -> Result<ast::File<'_>> {
        let part = self.parts[file].span.clone();
        parser::parse(&self.text, part, self.dialect).map_err(|error| self.locate(error))
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// The file that a file imports from; all that are imported are there.
    pub fn imported(&self, file: FileId, path: &[Cow<'_, str>]) -> FileId {
        self.by_names[&self.names(file, path)]
    }

    /// The name of an imported file, for messages.
    pub fn name(&self, file: FileId) -> &str {
        &self.parts[file].name
    }

    /// The file that a place is in.
    pub fn file_at(&self, at: usize) -> FileId {
        self.parts.partition_point(|part| part.span.start <= at) - 1
    }

    /// An error with its places told in the files.
    pub fn locate(&self, error: GrammarError) -> GrammarError {
        let find = |at| {
            let part = match self.file_at(at) {
                0 => return None,
                file => &self.parts[file],
            };
            let (name, text) = (part.name.clone(), self.text[part.span.clone()].to_owned());
            Some((Arc::new(ImportedFile { name, text }), part.span.start))
        };
        error.in_files(find).located(&self.text[self.parts[0].span.clone()])
    }

    fn read(&mut self, names: Names, span: &Span, folder: Option<&Path>, left: &mut u64) -> Result<()> {
        let error = |kind, message: String, help: &str| {
            GrammarError::new(kind, span.clone(), message).with_help(help.to_owned())
        };
        let Some(folder) = folder else {
            let help =
                "name the folder of the grammar when compiling it, or copy the definitions into this file";
            return Err(error(
                ErrorKind::Unsupported,
                "no folder is known to import files from".to_owned(),
                help,
            ));
        };
        if self.parts.len() > MAX_FILES {
            let message = format!("more than {MAX_FILES} files are imported");
            return Err(error(ErrorKind::Limit, message, "join some of them"));
        }
        let mut path: PathBuf = names.iter().collect();
        path.as_mut_os_string().push(".lark");
        let name = folder.join(&path).display().to_string();
        // Names in backquotes can be anything.
        if names
            .iter()
            .any(|name| name.is_empty() || name.contains(['/', '\\', ':', '\0']) || name.starts_with('.'))
        {
            let message = format!("`{name}` is no path below the folder of the grammar");
            return Err(error(
                ErrorKind::Io,
                message,
                "a path is made of names and dots: `%import .folder.file.rule`",
            ));
        }
        let unreadable = |why: String| {
            error(
                ErrorKind::Io,
                format!("cannot read `{name}`: {why}"),
                "files are looked for beside the grammar",
            )
        };
        let bytes = read_below(folder, &path, *left).map_err(|why| unreadable(why.to_string()))?;
        let Some(bytes) = bytes else {
            let message = format!("the imported files have more than {MAX_BYTES} bytes");
            return Err(error(ErrorKind::Limit, message, "import less"));
        };
        *left -= bytes.len() as u64;
        let text = diagnostic::decode(&bytes).map_err(|error| unreadable(error.message().to_owned()))?;
        let all = self.text.to_mut();
        all.push('\n');
        let start = all.len();
        all.push_str(text);
        self.by_names.insert(names.clone(), self.parts.len());
        self.parts.push(Part { names, name, span: start..all.len() });
        Ok(())
    }
}

/// The bytes of a file below a folder, if they are not too many.
fn read_below(folder: &Path, path: &Path, limit: u64) -> std::io::Result<Option<Vec<u8>>> {
    let folder = fs::canonicalize(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?;
    let path = fs::canonicalize(folder.join(path))?;
    if !path.starts_with(&folder) {
        return Err(std::io::Error::other("it leads outside of the folder of the grammar"));
    }
    // Others, such as pipes, may never end.
    if !fs::metadata(&path)?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(&path)?.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}
