//! Schemas and the documents around them: which draft each follows, and what its references point to.
//!
//! A *node* is a schema inside a document. It is known by where its value stands, so however it is reached
//! it is one node. What stays true: every node has the dialect and the base address of the resource that it
//! is in. Cost: one pass over the schemas of each document; a reference is a look-up, or the steps of its
//! pointer.

use std::borrow::Cow;
use std::sync::Arc;

use anygram_bits::index_type;
use fluent_uri::{Iri, IriRef};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::refusal::{Kind, Refusal};
use crate::value::Value;

index_type!(
    /// A schema inside a document.
    NodeId
);
index_type!(
    /// A schema resource: a document, or a part of one with an address of its own.
    ResourceId
);

/// Which keywords there are and what they mean.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Draft {
    /// Draft 4.
    Draft4,
    /// Draft 6.
    Draft6,
    /// Draft 7.
    Draft7,
    /// Draft 2019-09.
    Draft2019,
    /// Draft 2020-12, which also holds where a document does not say.
    Draft2020,
}

impl Draft {
    /// The draft that a `$schema` names.
    pub fn by_uri(uri: &str) -> Option<Self> {
        let uri = uri.trim_end_matches('#');
        let rest = uri.strip_prefix("http://").or_else(|| uri.strip_prefix("https://"))?;
        match rest.strip_prefix("json-schema.org/")? {
            "draft-04/schema" | "draft-03/schema" => Some(Self::Draft4),
            "draft-06/schema" => Some(Self::Draft6),
            "draft-07/schema" => Some(Self::Draft7),
            "draft/2019-09/schema" => Some(Self::Draft2019),
            "draft/2020-12/schema" | "schema" => Some(Self::Draft2020),
            _ => None,
        }
    }

    /// The keyword that gives a schema an address.
    fn id_keyword(self) -> &'static str {
        if self == Self::Draft4 { "id" } else { "$id" }
    }
}

/// A schema inside a document.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    /// The schema.
    pub value: &'a Value,
    /// The resource that it is in.
    pub resource: ResourceId,
    /// Its dialect.
    pub draft: Draft,
    /// Where it stands in its document, as a JSON pointer.
    pub pointer: Arc<str>,
}

#[derive(Debug)]
struct Resource<'a> {
    address: String,
    root: &'a Value,
    draft: Draft,
    pointer: Arc<str>,
    /// By name: the schema, where it stands, and whether the anchor is dynamic.
    anchors: FxHashMap<&'a str, (&'a Value, Arc<str>, bool)>,
    is_recursive_anchor: bool,
}

/// All documents of one schema.
#[derive(Debug)]
pub struct Documents<'a> {
    resources: Vec<Resource<'a>>,
    by_address: FxHashMap<String, ResourceId>,
    nodes: Vec<Node<'a>>,
    ids: FxHashMap<*const Value, NodeId>,
    /// The members of objects with many, once one was looked for.
    indexes: FxHashMap<*const Value, FxHashMap<&'a str, &'a Value>>,
    /// Where references lead, by the resource that they stand in.
    resolved: FxHashMap<ResourceId, FxHashMap<Box<str>, NodeId>>,
    /// Whether any reference depends on how it was reached.
    is_dynamic: bool,
}

/// Members of an object beyond which they are looked up.
const MANY_MEMBERS: usize = 16;

/// Keywords whose value is a schema.
pub(crate) const SINGLE: [&str; 13] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "extends",
];
/// Keywords whose value is a list of schemas.
pub(crate) const LISTS: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];
/// Keywords whose value has schemas by name.
pub(crate) const MAPS: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

impl<'a> Documents<'a> {
    /// The documents of a schema: the schema itself, and others by the addresses at which references expect
    /// them. `draft` holds where a document does not say.
    pub fn new(
        schema: &'a Value,
        others: impl IntoIterator<Item = (&'a str, &'a Value)>,
        draft: Draft,
    ) -> Result<Self, Refusal> {
        let mut this = Self {
            resources: Vec::new(),
            by_address: FxHashMap::default(),
            nodes: Vec::new(),
            ids: FxHashMap::default(),
            indexes: FxHashMap::default(),
            resolved: FxHashMap::default(),
            is_dynamic: false,
        };
        this.add(schema, "schema:", draft)?;
        for (address, document) in others {
            this.add(document, address, draft)?;
        }
        this.check_metaschema(schema)?;
        Ok(this)
    }

    /// The schema itself.
    pub fn root(&self) -> NodeId {
        NodeId(0)
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node<'a> {
        &self.nodes[id.index()]
    }

    /// Whether a reference may depend on how it was reached.
    pub fn is_dynamic(&self) -> bool {
        self.is_dynamic
    }

    fn add(&mut self, document: &'a Value, address: &str, draft: Draft) -> Result<(), Refusal> {
        let resource = self.resource(document, address.trim_end_matches('#').to_owned(), draft, "".into());
        let mut agenda: Vec<(&'a Value, ResourceId, Arc<str>)> = vec![(document, resource, "".into())];
        let first = self.resources[resource.index()].draft;
        self.resources[resource.index()].draft = first;
        while let Some((value, within, pointer)) = agenda.pop() {
            let within = self.enter(value, within, &pointer)?;
            let draft = self.resources[within.index()].draft;
            let fresh = NodeId::new(self.nodes.len());
            self.ids.insert(std::ptr::from_ref(value), fresh);
            self.nodes.push(Node { value, resource: within, draft, pointer: pointer.clone() });
            let Some(members) = value.members() else { continue };
            self.ids.reserve(agenda.len());
            if draft <= Draft::Draft7 && value.get("$ref").is_some() {
                // What stands beside a reference is nothing but a place to point at.
                let kept = members.iter().filter(|(key, _)| matches!(&**key, "definitions" | "$defs"));
                subschemas(kept, within, &pointer, &mut agenda);
                continue;
            }
            subschemas(members.iter(), within, &pointer, &mut agenda);
        }
        Ok(())
    }

    /// Refuses a document whose metaschema has a vocabulary of its own: which keywords mean something then?
    fn check_metaschema(&self, document: &'a Value) -> Result<(), Refusal> {
        let Some(uri) = document.get("$schema").and_then(Value::text) else { return Ok(()) };
        let own = self.by_address.get(uri.trim_end_matches('#')).map(|id| &self.resources[id.index()]);
        match own {
            Some(own) if Draft::by_uri(uri).is_none() && own.root.get("$vocabulary").is_some() => {
                let message = format!("the metaschema {uri} chooses vocabularies, which is not supported");
                Err(Refusal::new(Kind::Unsupported, "", message).keyword("$schema"))
            }
            _ => Ok(()),
        }
    }

    fn resource(&mut self, root: &'a Value, address: String, draft: Draft, pointer: Arc<str>) -> ResourceId {
        let declared = root.get("$schema").and_then(Value::text).and_then(|uri| Draft::by_uri(uri));
        let id = ResourceId::new(self.resources.len());
        self.resources.push(Resource {
            address: address.clone(),
            root,
            draft: declared.unwrap_or(draft),
            pointer,
            anchors: FxHashMap::default(),
            is_recursive_anchor: root.get("$recursiveAnchor") == Some(&Value::Bool(true)),
        });
        self.by_address.entry(address).or_insert(id);
        id
    }

    /// Notes addresses and anchors of a schema; the resource that it is in.
    fn enter(
        &mut self,
        value: &'a Value,
        within: ResourceId,
        pointer: &Arc<str>,
    ) -> Result<ResourceId, Refusal> {
        let mut within = within;
        let draft = match value.get("$schema").and_then(Value::text).and_then(|uri| Draft::by_uri(uri)) {
            Some(draft) => draft,
            None => self.resources[within.index()].draft,
        };
        let has_siblings = draft <= Draft::Draft7 && value.get("$ref").is_some();
        if let Some(id) = value.get(draft.id_keyword()).and_then(Value::text)
            && !has_siblings
        {
            let (address, fragment) = id.split_once('#').unwrap_or((id, ""));
            if !address.is_empty() {
                let whole = self.resolve_address(within, address, pointer)?;
                if pointer.is_empty() && std::ptr::eq(self.resources[within.index()].root, value) {
                    self.resources[within.index()].address.clone_from(&whole);
                    self.by_address.entry(whole).or_insert(within);
                } else {
                    within = self.resource(value, whole, draft, pointer.clone());
                }
            }
            if !fragment.is_empty() && draft <= Draft::Draft7 {
                self.anchor(within, fragment, value, pointer, false);
            }
        }
        if draft >= Draft::Draft2019 {
            if let Some(name) = value.get("$anchor").and_then(Value::text) {
                self.anchor(within, name, value, pointer, false);
            }
            if let Some(name) = value.get("$dynamicAnchor").and_then(Value::text) {
                self.anchor(within, name, value, pointer, true);
            }
        }
        self.is_dynamic |= value.get("$dynamicRef").is_some() || value.get("$recursiveRef").is_some();
        Ok(within)
    }

    fn anchor(
        &mut self,
        within: ResourceId,
        name: &'a str,
        value: &'a Value,
        pointer: &Arc<str>,
        is_dynamic: bool,
    ) {
        self.resources[within.index()].anchors.entry(name).or_insert((value, pointer.clone(), is_dynamic));
    }

    fn resolve_address(&self, within: ResourceId, address: &str, pointer: &str) -> Result<String, Refusal> {
        let refused = || Refusal::new(Kind::Syntax, pointer, format!("no address: {address:?}"));
        let relative = IriRef::parse(address).map_err(|_| refused())?;
        let base = &self.resources[within.index()].address;
        if relative.has_scheme() {
            return Ok(address.trim_end_matches('#').to_owned());
        }
        let Ok(base) = Iri::parse(base.as_str()) else { return Ok(address.to_owned()) };
        // The document has no address of its own: its parts are known by what they say.
        if base.path().as_str().is_empty() && base.authority().is_none() {
            return Ok(address.to_owned());
        }
        let whole = relative.resolve_against(&base).map_err(|_| refused())?;
        Ok(whole.as_str().trim_end_matches('#').to_owned())
    }

    /// The node that a reference in a node points to.
    pub fn resolve(&mut self, from: NodeId, reference: &str) -> Result<NodeId, Refusal> {
        let resource = self.nodes[from.index()].resource;
        if let Some(&known) = self.resolved.get(&resource).and_then(|known| known.get(reference)) {
            return Ok(known);
        }
        let found = self.find(from, reference)?;
        self.resolved.entry(resource).or_default().insert(reference.into(), found);
        Ok(found)
    }

    fn find(&mut self, from: NodeId, reference: &str) -> Result<NodeId, Refusal> {
        let Node { resource, pointer, .. } = self.nodes[from.index()].clone();
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let target = if address.is_empty() {
            resource
        } else {
            let whole = self.resolve_address(resource, address, &pointer)?;
            *self.by_address.get(&whole).ok_or_else(|| {
                let message = format!(
                    "no document was given for the reference to {whole}; documents are never fetched, \
                     pass it along"
                );
                Refusal::new(Kind::Unsupported, &pointer, message).keyword("$ref")
            })?
        };
        let unknown = |what: &str| {
            let message = format!("the reference {reference:?} points to nothing: {what}");
            Refusal::new(Kind::Syntax, &pointer, message).keyword("$ref")
        };
        let fragment = percent_decoded(fragment).ok_or_else(|| unknown("its fragment is no text"))?;
        let Resource { root, pointer: at, anchors, .. } = &self.resources[target.index()];
        if fragment.is_empty() {
            let (root, at) = (*root, at.clone());
            return Ok(self.intern(root, target, at));
        }
        if !fragment.starts_with('/') {
            let Some((value, at, _)) = anchors.get(&*fragment) else {
                return Err(unknown("there is no such anchor"));
            };
            let (value, at) = (*value, at.clone());
            return Ok(self.intern(value, target, at));
        }
        let (mut value, mut within, mut path) = (*root, target, at.to_string());
        for token in fragment[1..].split('/') {
            let token = token.replace("~1", "/").replace("~0", "~");
            let next = match value {
                Value::Object(members) if members.len() > MANY_MEMBERS => {
                    let index = || members.iter().map(|(key, value)| (&**key, value)).collect();
                    let index = self.indexes.entry(std::ptr::from_ref(value)).or_insert_with(index);
                    index.get(&*token).copied()
                }
                Value::Object(_) => value.get(&token),
                Value::Array(items) => token.parse::<usize>().ok().and_then(|at| items.get(at)),
                _ => None,
            };
            value = next.ok_or_else(|| unknown(&format!("there is no {token:?}")))?;
            path = format!("{path}/{}", escaped(&token));
            if let Some(known) = self.ids.get(&std::ptr::from_ref(value)) {
                within = self.nodes[known.index()].resource;
            }
        }
        Ok(self.intern(value, within, path.into()))
    }

    /// The node of a value that stands in a resource.
    pub fn intern(&mut self, value: &'a Value, resource: ResourceId, pointer: Arc<str>) -> NodeId {
        let fresh = NodeId::new(self.nodes.len());
        let draft = self.resources[resource.index()].draft;
        *self.ids.entry(std::ptr::from_ref(value)).or_insert_with(|| {
            self.nodes.push(Node { value, resource, draft, pointer });
            fresh
        })
    }

    /// The node of a schema under a node.
    pub fn child(&mut self, of: NodeId, value: &'a Value, path: &str) -> NodeId {
        if let Some(&known) = self.ids.get(&std::ptr::from_ref(value)) {
            return known;
        }
        let Node { resource, pointer, .. } = &self.nodes[of.index()];
        let (resource, pointer) = (*resource, format!("{pointer}/{path}").into());
        self.intern(value, resource, pointer)
    }

    /// The node that a dynamic reference points to, seen through the resources that were entered on the way,
    /// the outermost first.
    pub fn resolve_dynamic(
        &mut self,
        from: NodeId,
        reference: &str,
        scope: &[ResourceId],
    ) -> Result<NodeId, Refusal> {
        let first = self.resolve(from, reference)?;
        let Some((_, name)) = reference.split_once('#') else { return Ok(first) };
        let home = self.nodes[first.index()].resource;
        if !matches!(self.resources[home.index()].anchors.get(name), Some((_, _, true))) {
            return Ok(first);
        }
        for &resource in scope {
            if let Some((value, at, true)) = self.resources[resource.index()].anchors.get(name) {
                let (value, at) = (*value, at.clone());
                return Ok(self.intern(value, resource, at));
            }
        }
        Ok(first)
    }

    /// As [`Documents::resolve_dynamic`] for draft 2019-09's `$recursiveRef`.
    pub fn resolve_recursive(&mut self, from: NodeId, scope: &[ResourceId]) -> Result<NodeId, Refusal> {
        let first = self.resolve(from, "#")?;
        let home = self.nodes[first.index()].resource;
        if !self.resources[home.index()].is_recursive_anchor {
            return Ok(first);
        }
        let outermost = scope.iter().find(|resource| self.resources[resource.index()].is_recursive_anchor);
        let Some(&outermost) = outermost else { return Ok(first) };
        let Resource { root, pointer, .. } = &self.resources[outermost.index()];
        let (root, pointer) = (*root, pointer.clone());
        Ok(self.intern(root, outermost, pointer))
    }

    /// The addresses of all resources, for messages.
    pub fn addresses(&self) -> FxHashSet<&str> {
        self.by_address.keys().map(String::as_str).collect()
    }
}

/// The schemas directly below some members of a schema.
fn subschemas<'a>(
    members: impl Iterator<Item = &'a (Arc<str>, Value)>,
    within: ResourceId,
    pointer: &Arc<str>,
    agenda: &mut Vec<(&'a Value, ResourceId, Arc<str>)>,
) {
    let is_schema = |value: &Value| matches!(value, Value::Object(_) | Value::Bool(_));
    for (key, value) in members {
        let key: &str = key;
        if SINGLE.contains(&key) && is_schema(value) {
            agenda.push((value, within, format!("{pointer}/{key}").into()));
        }
        if LISTS.contains(&key) {
            let items = value.items().unwrap_or_default().iter().enumerate();
            let places = items.filter(|(_, item)| is_schema(item));
            agenda.extend(places.map(|(at, item)| (item, within, format!("{pointer}/{key}/{at}").into())));
        }
        if MAPS.contains(&key) {
            let members = value.members().unwrap_or_default().iter();
            let places = members.filter(|(_, member)| is_schema(member));
            agenda.extend(
                places.map(|(name, member)| {
                    (member, within, format!("{pointer}/{key}/{}", escaped(name)).into())
                }),
            );
        }
    }
}

/// A key as a step of a JSON pointer.
pub fn escaped(key: &str) -> Cow<'_, str> {
    match key.contains(['~', '/']) {
        true => key.replace('~', "~0").replace('/', "~1").into(),
        false => key.into(),
    }
}

/// `None` if it is no text.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}
