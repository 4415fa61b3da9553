//! What outlives the states of an engine: what they look like, and states that another engine adopts.
//!
//! Tables that are full begin with a new engine over the same grammar. What was found out about states holds
//! of all that look alike, so the numbers of their *shapes* go on in it; and a state that is still needed is
//! made again there, with those in which its items began.

use anygram_bits::{Pages, SliceId};
use rustc_hash::FxHashMap;

use super::{Completed, Earley, Item};
use crate::{Recognizer, RecognizerError, StateId};

/// Beyond this many shapes, whoever takes tables over forgets them.
const MANY_SHAPES: usize = 100_000;

/// A state without the identity of the states that its items began in. Of rests that are states of automata
/// it has the automaton and the state, for their ids are not the same in all engines.
pub(super) type Shape = (Box<[((u32, u32), u32)]>, bool);

/// What a state shows without a look into the states in which its items began, see [`Earley::view`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View<'a> {
    /// Two states of one engine with one shape differ at most in what [`View::origins`] are.
    pub shape: u32,
    /// The states that its items began in, in an order that the shape fixes.
    pub origins: &'a [StateId],
}

impl Earley {
    /// What a state shows. A result of [`Recognizer::extend`] that looked into no other states than these and
    /// those it made ([`Earley::looked_into`]) holds for all states with equal views.
    pub fn view(&mut self, state: StateId) -> View<'_> {
        while self.views.len() <= state.index() {
            self.views.push(None);
        }
        let (shape, origins) = match self.views[state.index()] {
            Some(known) => known,
            None => {
                let view = self.make_view(state);
                self.views[state.index()] = Some(view);
                view
            }
        };
        View { shape, origins: self.lists.get(origins) }
    }

    fn make_view(&mut self, state: StateId) -> (u32, SliceId) {
        let (kernel, is_sentence) = self.kernel(state);
        let mut origins: Vec<StateId> = Vec::new();
        let mut numbers: FxHashMap<StateId, u32> = FxHashMap::default();
        let mut number = |origin: StateId| {
            *numbers.entry(origin).or_insert_with(|| {
                origins.push(origin);
                origins.len() as u32 - 1
            })
        };
        let items = kernel.iter().map(|&(rest, origin)| (self.grown.name(rest), number(origin))).collect();
        let fresh = self.shapes.len() as u32;
        let shape = *self.shapes.entry((items, is_sentence)).or_insert(fresh);
        (shape, self.lists.push(&origins))
    }

    /// Continues the numbering of shapes of another engine over the same grammar, which starts a new
    /// numbering. False if that has too many, so that both start a new one: then no shape means what it
    /// meant.
    pub fn take_shapes(&mut self, of: &mut Self) -> bool {
        (self.views, of.views) = (Pages::default(), Pages::default());
        self.shapes = std::mem::take(&mut of.shapes);
        let is_too_many = self.shapes.len() > MANY_SHAPES;
        if is_too_many {
            self.shapes.clear();
        }
        !is_too_many
    }

    /// The state that reads what one of another engine over the same grammar reads. What it takes over on the
    /// way, the states in which items began, is noted in `known`, by their ids there. Cost: the items of
    /// those that are not known yet.
    pub fn adopt(
        &mut self,
        of: &Self,
        state: StateId,
        known: &mut FxHashMap<StateId, StateId>,
    ) -> Result<StateId, RecognizerError> {
        let start = of.start();
        known.entry(start).or_insert_with(|| self.start());
        let mut open = vec![state];
        while let Some(&state) = open.last() {
            if known.contains_key(&state) {
                open.pop();
                continue;
            }
            let (kernel, is_sentence) = of.kernel(state);
            let n_open = open.len();
            open.extend(kernel.iter().map(|item| item.1).filter(|origin| !known.contains_key(origin)));
            if open.len() > n_open {
                continue;
            }
            let item =
                |&(rest, origin): &Item| Some((self.rest_named(of.grown.name(rest)), *known.get(&origin)?));
            let items = kernel.iter().filter_map(item).collect();
            let own = self.intern(Completed { items, is_sentence, reach: None })?;
            known.insert(state, own);
        }
        known.get(&state).copied().ok_or(RecognizerError::TooManyItems { limit: self.limits.items })
    }

    /// Leaves only what [`Earley::adopt`] takes from it.
    pub fn retire(&mut self) {
        (self.ids, self.steps, self.completed) = Default::default();
        (self.begins_in, self.same, self.merges, self.views) = Default::default();
        (self.reaches, self.lists, self.all_completed) = Default::default();
    }

    /// Forgets the numbers of shapes: a state that is looked at again has another.
    pub fn forget_shapes(&mut self) {
        self.views = Pages::default();
        self.shapes = FxHashMap::default();
    }
}
