//! Documents, the schema resources in them, and what references refer to.

use std::cell::RefCell;
use std::collections::HashMap;

use fluent_uri::{Iri, IriRef};

use crate::dialect::{Dialect, Draft};
use crate::evaluate::Undecided;
use crate::json::Value;

/// The documents that schemas may refer to, each by its address.
#[derive(Clone, Debug)]
pub struct Registry {
    documents: Vec<(String, Value)>,
    default: Dialect,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new(Dialect::unstated())
    }
}

impl Registry {
    /// An empty registry; `default` is the dialect of documents without a `$schema` that is known.
    pub fn new(default: Dialect) -> Self {
        Self { documents: Vec::new(), default }
    }

    /// Adds a document at an absolute address without a fragment. Of two at one address the first counts.
    pub fn add(&mut self, uri: &str, document: Value) {
        self.documents.push((without_fragment(uri).to_owned(), document));
    }

    /// The schema at an address, which some [`add`](Self::add) was given.
    pub fn schema(&self, uri: &str) -> Result<Schema<'_>, Undecided> {
        let mut index = Index::default();
        for (uri, document) in &self.documents {
            let dialect = self.dialect_of(document, self.default, 0);
            let resource = index.add_resource(uri.clone(), document, dialect);
            self.visit(&mut index, document, resource);
        }
        let root = index.by_uri.get(without_fragment(uri)).copied();
        let root = root.ok_or_else(|| Undecided::Unresolvable(uri.to_owned()))?;
        Ok(Schema { index, root, patterns: RefCell::default() })
    }

    /// The dialect that a resource states, or the one it stands in.
    fn dialect_of(&self, schema: &Value, around: Dialect, nesting: usize) -> Dialect {
        let Some(uri) = schema.get("$schema").and_then(Value::as_str) else { return around };
        if let Some(draft) = Draft::of_metaschema(uri) {
            return Dialect::from(draft);
        }
        let metaschema = self.documents.iter().find(|(address, _)| address == without_fragment(uri));
        let Some((_, metaschema)) = metaschema.filter(|_| nesting < 8) else { return around };
        let parent = self.dialect_of(metaschema, self.default, nesting + 1);
        Dialect::of_vocabularies(metaschema, parent.draft).unwrap_or(parent)
    }

    /// Notes a schema that stands in a resource, and all below it.
    fn visit<'r>(&self, index: &mut Index<'r>, root: &'r Value, resource: usize) {
        let mut waiting = vec![(root, resource)];
        while let Some((schema, around)) = waiting.pop() {
            let resource = self.enter(index, schema, around);
            index.resource_of.insert(address(schema), resource);
            let dialect = index.resources[resource].dialect;
            index.add_anchors(schema, resource);
            waiting.extend(dialect.subschemas(schema).into_iter().rev().map(|below| (below, resource)));
        }
    }

    /// The resource of a schema inside of another's: a new one if it has an `$id` that moves the base.
    fn enter<'r>(&self, index: &mut Index<'r>, schema: &'r Value, around: usize) -> usize {
        let (outer, base) = (index.resources[around].dialect, index.resources[around].uri.clone());
        // The dialect decides what an identifier is, so one that only the inner dialect has counts as well.
        let inner = self.dialect_of(schema, outer, 0);
        let Some((id, dialect)) =
            inner.id_of(schema).map(|id| (id, inner)).or_else(|| outer.id_of(schema).map(|id| (id, outer)))
        else {
            return around;
        };
        let (path, fragment) = id.split_once('#').unwrap_or((id, ""));
        let target = if path.is_empty() { Some(base.clone()) } else { resolve(path, &base) };
        let Some(uri) = target else { return around };
        let is_root = std::ptr::eq(index.resources[around].root, schema);
        let resource = if is_root {
            index.rename(around, uri)
        } else if uri == base {
            around
        } else {
            index.add_resource(uri, schema, dialect)
        };
        if !fragment.is_empty() && dialect.ref_hides_siblings() {
            index.resources[resource].anchors.entry(fragment.to_owned()).or_insert(schema);
        }
        resource
    }
}

/// A schema and all it may refer to.
#[derive(Debug)]
pub struct Schema<'r> {
    pub(crate) index: Index<'r>,
    pub(crate) root: usize,
    /// Compiled patterns by their text; `None` for those that are none.
    pub(crate) patterns: RefCell<HashMap<String, Option<regress::Regex>>>,
}

/// All resources of all documents.
#[derive(Default, Debug)]
pub(crate) struct Index<'r> {
    pub(crate) resources: Vec<Resource<'r>>,
    by_uri: HashMap<String, usize>,
    /// The resource of each schema, by its address in memory.
    resource_of: HashMap<usize, usize>,
}

/// A schema resource: what has an address, and is the base of the references in it.
#[derive(Debug)]
pub(crate) struct Resource<'r> {
    uri: String,
    pub(crate) root: &'r Value,
    pub(crate) dialect: Dialect,
    anchors: HashMap<String, &'r Value>,
    dynamic_anchors: HashMap<String, &'r Value>,
}

/// A schema, and the resource that it stands in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'r> {
    pub(crate) schema: &'r Value,
    pub(crate) resource: usize,
}

/// What tells a node of a document from all others.
pub(crate) fn address(value: &Value) -> usize {
    std::ptr::from_ref(value) as usize
}

fn without_fragment(uri: &str) -> &str {
    uri.split_once('#').map_or(uri, |(uri, _)| uri)
}

/// The absolute address of a reference without fragment.
fn resolve(reference: &str, base: &str) -> Option<String> {
    let reference = IriRef::parse(reference).ok()?;
    let resolved = match Iri::parse(base) {
        Ok(base) => reference.resolve_against(&base).ok()?,
        Err(_) => Iri::parse(reference.as_str().to_owned()).ok()?,
    };
    Some(resolved.normalize().as_str().to_owned())
}

impl<'r> Index<'r> {
    fn add_resource(&mut self, uri: String, root: &'r Value, dialect: Dialect) -> usize {
        let resource = self.resources.len();
        self.by_uri.entry(uri.clone()).or_insert(resource);
        let (anchors, dynamic_anchors) = Default::default();
        self.resources.push(Resource { uri, root, dialect, anchors, dynamic_anchors });
        resource
    }

    /// Gives a document the address that it names itself; the one it was found at stays valid.
    fn rename(&mut self, resource: usize, uri: String) -> usize {
        self.by_uri.entry(uri.clone()).or_insert(resource);
        self.resources[resource].uri = uri;
        resource
    }

    fn add_anchors(&mut self, schema: &'r Value, resource: usize) {
        let resource = &mut self.resources[resource];
        let dialect = resource.dialect;
        let anchor = |keyword| schema.get(keyword).filter(|_| dialect.has(keyword)).and_then(Value::as_str);
        if let Some(name) = anchor("$dynamicAnchor") {
            resource.dynamic_anchors.entry(name.to_owned()).or_insert(schema);
        }
        for name in [anchor("$anchor"), anchor("$dynamicAnchor")].into_iter().flatten() {
            resource.anchors.entry(name.to_owned()).or_insert(schema);
        }
    }

    /// A schema below another one.
    pub(crate) fn below(&self, schema: &'r Value, around: Place<'r>) -> Place<'r> {
        let resource = self.resource_of.get(&address(schema)).copied().unwrap_or(around.resource);
        Place { schema, resource }
    }

    /// The root of a resource.
    pub(crate) fn root_of(&self, resource: usize) -> Place<'r> {
        Place { schema: self.resources[resource].root, resource }
    }

    /// What a reference in a resource refers to; and the name, if it refers by an anchor.
    pub(crate) fn follow<'t>(
        &self,
        reference: &'t str,
        from: usize,
    ) -> Result<(Place<'r>, Option<&'t str>), Undecided> {
        let unresolvable = || Undecided::Unresolvable(format!("{reference} in {}", self.resources[from].uri));
        let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = if path.is_empty() {
            from
        } else {
            let uri = resolve(path, &self.resources[from].uri).ok_or_else(unresolvable)?;
            *self.by_uri.get(&uri).ok_or_else(unresolvable)?
        };
        if fragment.is_empty() {
            return Ok((self.root_of(resource), None));
        }
        let decoded = percent_decoded(fragment).ok_or_else(unresolvable)?;
        if decoded.starts_with('/') {
            let place = self.point(&decoded, self.root_of(resource)).ok_or_else(unresolvable)?;
            return Ok((place, None));
        }
        let schema = self.resources[resource].anchors.get(&decoded).ok_or_else(unresolvable)?;
        Ok((Place { schema, resource }, Some(fragment)))
    }

    /// What a JSON pointer points to.
    fn point(&self, pointer: &str, from: Place<'r>) -> Option<Place<'r>> {
        let mut place = from;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            let next = match place.schema {
                Value::Object(_) => place.schema.get(&token)?,
                Value::Array(items) => items.get(array_index(&token)?)?,
                _ => return None,
            };
            place = self.below(next, place);
        }
        Some(place)
    }

    /// What `$dynamicRef` means where the plain reference leads to a dynamic anchor: the same anchor in the
    /// outermost resource of the dynamic scope that has it.
    pub(crate) fn dynamic(&self, name: &str, plain: Place<'r>, scope: &[usize]) -> Place<'r> {
        let is_dynamic = self.resources[plain.resource]
            .dynamic_anchors
            .get(name)
            .is_some_and(|s| std::ptr::eq(*s, plain.schema));
        if !is_dynamic {
            return plain;
        }
        let found = scope.iter().find_map(|&resource| {
            self.resources[resource].dynamic_anchors.get(name).map(|schema| Place { schema, resource })
        });
        found.unwrap_or(plain)
    }

    /// What `$recursiveRef` means where the plain reference leads to `plain`.
    pub(crate) fn recursive(&self, plain: Place<'r>, scope: &[usize]) -> Place<'r> {
        let is_anchor = |schema: &Value| schema.get("$recursiveAnchor") == Some(&Value::Bool(true));
        if !is_anchor(plain.schema) {
            return plain;
        }
        let outermost = scope.iter().find(|&&resource| is_anchor(self.resources[resource].root));
        outermost.map_or(plain, |&resource| self.root_of(resource))
    }
}

/// An index as RFC 6901 writes it.
fn array_index(token: &str) -> Option<usize> {
    let is_index =
        token == "0" || (!token.starts_with('0') && token.bytes().all(|byte| byte.is_ascii_digit()));
    if is_index { token.parse().ok() } else { None }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
        decoded.push(if byte == b'%' { u8::try_from(digit()? * 16 + digit()?).ok()? } else { byte });
    }
    String::from_utf8(decoded).ok()
}
