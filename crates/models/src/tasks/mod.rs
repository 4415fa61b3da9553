//! The three tasks of the small models. This module draws prompts and answers from seeds.
//!
//! | task | a prompt | an answer |
//! |---|---|---|
//! | `record` | `json: Ada is 34, a pilot, from Oslo floor 2, has cat Tom.` | `{"name":"Ada","age":34,"job":"pilot","home":{"city":"Oslo","floor":2},"pets":[{"kind":"cat","name":"Tom"}]}` |
//! | `arithmetic` | `math: 3 plus 4 times 2, all minus 1` | `((3+(4*2))-1)` |
//! | `smiles` | `smiles: aromatic ring, double bond, O` | `c1ccc(C=O)cc1` |
//!
//! Each task has many right answers: members in any order, sums grouped in several ways, molecules with the
//! same properties. In references one form is the most frequent: members in the order of the prompt, sums
//! grouped from the left, atoms in the chain. A model that fills many slots at once, each by itself, mixes
//! answers. This is where a constraint helps, so it is worth measuring.
//!
//! Each has a grammar of its answers ([`Task::grammar`], Lark) and a check of what an answer says
//! ([`Example::check`]). An answer is *syntactic* if it is a sentence of the grammar, *functional* if it also
//! passes the check. Every prompt ends with a line break, and its first word names the task.
//!
//! Laws, checked by the tests: equal seeds give equal examples; the reference answer of an example is
//! syntactic and functional; no prompt is both in [`Split::Train`] and in [`Split::HeldOut`], since a hash of
//! the prompt decides.

mod arithmetic;
mod record;
mod smiles;

use anygram_bits::Random;
use std::collections::HashSet;

/// Something to write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Task {
    /// A record in words to a JSON object.
    Record,
    /// An arithmetic question to an expression in full parentheses.
    Arithmetic,
    /// Properties of a molecule to a molecule in a small part of SMILES.
    Smiles,
}

/// Which examples: those that models were trained on, or the others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Split {
    /// Seven of eight prompts.
    Train,
    /// One of eight; no model has seen them in training.
    HeldOut,
}

/// A prompt, an answer to it, and what every right answer has to say.
#[derive(Clone, PartialEq, Debug)]
pub struct Example {
    /// Of which task.
    pub task: Task,
    /// What the model reads; ends with a line break.
    pub prompt: String,
    /// One right answer of several.
    pub answer: String,
    wanted: Wanted,
}

#[derive(Clone, PartialEq, Debug)]
enum Wanted {
    Record(serde_json::Value),
    Arithmetic(arithmetic::Wanted),
    Smiles(smiles::Properties),
}

/// Draws that are tried at most for one example of a split.
const MAX_DRAWS: usize = 1000;

impl Task {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Record, Self::Arithmetic, Self::Smiles];

    /// As it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Arithmetic => "arithmetic",
            Self::Smiles => "smiles",
        }
    }

    /// The task of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|task| task.name() == name)
    }

    /// The grammar of its answers, in Lark.
    pub fn grammar(self) -> &'static str {
        match self {
            Self::Record => include_str!("../../grammars/record.lark"),
            Self::Arithmetic => include_str!("../../grammars/arithmetic.lark"),
            Self::Smiles => include_str!("../../grammars/smiles.lark"),
        }
    }

    /// A prompt as those of the task are: its word in front (`json:`, `math:`, `smiles:`), a line break
    /// behind, and what of that is there already is not repeated.
    pub fn prompt(self, said: &str) -> String {
        let (word, end) = match self {
            Self::Record => ("json:", "."),
            Self::Arithmetic => ("math:", ""),
            Self::Smiles => ("smiles:", ""),
        };
        let said = said.trim();
        let said = said.strip_prefix(word).unwrap_or(said).trim();
        format!("{word} {}{end}\n", said.strip_suffix(end).unwrap_or(said))
    }

    /// The example of a seed, of either split.
    pub fn example(self, seed: u64) -> Example {
        let mut random = Random::new(seed);
        let (said, answer, wanted) = match self {
            Self::Record => record::example(&mut random),
            Self::Arithmetic => arithmetic::example(&mut random),
            Self::Smiles => smiles::example(&mut random),
        };
        Example { task: self, prompt: self.prompt(&said), answer, wanted }
    }

    /// Examples of a split with prompts that are all different, from the stream of a seed: as many as were
    /// asked for, unless the task has too few prompts (of held-out ones there are some hundreds at least).
    pub fn examples(self, split: Split, seed: u64, n_examples: usize) -> Vec<Example> {
        let mut seen = HashSet::new();
        let mut stream = self.stream(split, seed);
        let mut examples = Vec::with_capacity(n_examples);
        let mut repeated = 0;
        while examples.len() < n_examples && repeated < MAX_DRAWS {
            let Some(example) = stream.next() else { break };
            if seen.insert(example.prompt.clone()) {
                examples.push(example);
                repeated = 0;
            } else {
                repeated += 1;
            }
        }
        examples
    }

    /// Examples of a split without end, prompts repeated; what training reads.
    pub fn stream(self, split: Split, seed: u64) -> impl Iterator<Item = Example> {
        let mut random = Random::new(seed ^ (self as u64) << 56);
        std::iter::from_fn(move || {
            (0..MAX_DRAWS)
                .map(|_| self.example(random.bits()))
                .find(|example| Split::of(&example.prompt) == split)
        })
    }
}

impl Split {
    /// Where a prompt belongs: FNV-1a (Fowler, Noll and Vo) of its bytes, the upper bits modulo 8.
    pub fn of(prompt: &str) -> Self {
        let hash = prompt.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        if (hash >> 32).is_multiple_of(8) { Self::HeldOut } else { Self::Train }
    }
}

impl Example {
    /// Whether an answer says what the prompt asks for. An answer that is not a sentence of the grammar may
    /// pass or not, so ask the grammar too.
    ///
    /// - record: the JSON object equals the record, whatever the order of its members, and no key comes
    ///   twice;
    /// - arithmetic: the numbers are those of the question, in its order, and the value is right;
    /// - smiles: rings, elements and double bonds are those asked for, and no atom has more bonds than its
    ///   valence.
    pub fn check(&self, answer: &str) -> bool {
        match &self.wanted {
            Wanted::Record(record) => record::check(answer, record),
            Wanted::Arithmetic(wanted) => wanted.check(answer),
            Wanted::Smiles(wanted) => {
                smiles::Properties::of(answer).is_some_and(|properties| properties == *wanted)
            }
        }
    }
}

/// One of these.
fn pick(random: &mut Random, items: &[&'static str]) -> &'static str {
    items[random.below(items.len())]
}
