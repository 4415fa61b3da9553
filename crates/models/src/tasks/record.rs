//! A person in words to a JSON object with objects and arrays in it. All words are from closed lists, so that
//! a small model can learn to copy them.
//!
//! What a record has besides a name differs. Values are compared, not texts, so members may stand in any
//! order. References have the order of the prompt: where they had any, small models did not learn to copy.

use super::{Wanted, pick};
use anygram_bits::Random;
use serde_json::{Value, json};

const NAMES: [&str; 20] = [
    "Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hugo", "Iris", "Jon", "Kira", "Leo", "Mia", "Nils",
    "Olga", "Paul", "Rosa", "Sam", "Tess", "Uwe",
];
const JOBS: [&str; 12] = [
    "baker", "pilot", "nurse", "clerk", "judge", "miner", "tailor", "waiter", "author", "farmer", "singer",
    "banker",
];
const CITIES: [&str; 16] = [
    "Oslo", "Rome", "Lima", "Cairo", "Paris", "Quito", "Tokyo", "Delhi", "Berlin", "Madrid", "Dublin",
    "Vienna", "Havana", "Nairobi", "Boston", "Sydney",
];
const LIKES: [&str; 16] = [
    "chess", "tea", "jazz", "golf", "yoga", "maps", "trains", "books", "opera", "cheese", "boats", "poems",
    "hiking", "tennis", "cards", "films",
];
const KINDS: [&str; 6] = ["cat", "dog", "goat", "horse", "parrot", "rabbit"];
const PETS: [&str; 10] = ["Tom", "Rex", "Luna", "Bello", "Coco", "Milo", "Nala", "Ruby", "Toby", "Zoe"];

/// The youngest and the oldest.
const AGES: std::ops::Range<usize> = 18..66;
/// Floors of a home, from 1.
const FLOORS: usize = 9;
/// The longest record that is asked for, in bytes: some 60 tokens.
const LONGEST: usize = 210;

pub(super) fn example(random: &mut Random) -> (String, String, Wanted) {
    loop {
        let person = Person::draw(random, true);
        let answer = person.text();
        let read = serde_json::from_str(&answer).ok().filter(|_| answer.len() <= LONGEST);
        if let Some(record) = read {
            return (person.said.join(", "), answer, Wanted::Record(record));
        }
    }
}

/// Whether an answer is a record with these values, each key of an object once.
pub(super) fn check(answer: &str, record: &Value) -> bool {
    let read = serde_json::from_str::<Value>(answer);
    // What came twice is gone from what was read. No string has a space.
    let n_bytes = answer.bytes().filter(|byte| !byte.is_ascii_whitespace()).count();
    read.is_ok_and(|read| read == *record && read.to_string().len() == n_bytes)
}

/// Somebody as a prompt says it, and the members of the record but for the name.
struct Person {
    name: &'static str,
    said: Vec<String>,
    members: Vec<String>,
}

impl Person {
    fn draw(random: &mut Random, has_boss: bool) -> Self {
        let (name, age) = (pick(random, &NAMES), AGES.start + random.below(AGES.len()));
        let mut person =
            Self { name, said: vec![format!("{name} is {age}")], members: vec![member("age", &age.into())] };
        let (likely, rare) = if has_boss { (70, 35) } else { (40, 0) };
        if random.chance(likely) {
            let job = pick(random, &JOBS);
            person.add(format!("a {job}"), "job", &job.into());
        }
        if random.chance(likely) {
            person.add_home(random);
        }
        if has_boss {
            person.add_likes(random);
            person.add_pets(random);
        }
        if random.chance(rare) {
            let boss = Self::draw(random, false);
            person.said.push(format!("boss {}", boss.said.join(" and ")));
            person.members.push(format!("\"boss\":{}", boss.text()));
        }
        person
    }

    fn add(&mut self, said: String, key: &str, value: &Value) {
        self.said.push(said);
        self.members.push(member(key, value));
    }

    fn add_home(&mut self, random: &mut Random) {
        let city = pick(random, &CITIES);
        if random.chance(50) {
            let floor = 1 + random.below(FLOORS);
            self.add(format!("from {city} floor {floor}"), "home", &json!({"city": city, "floor": floor}));
        } else {
            self.add(format!("from {city}"), "home", &json!({"city": city}));
        }
    }

    fn add_likes(&mut self, random: &mut Random) {
        let likes = several(random, |random| pick(random, &LIKES));
        if !likes.is_empty() {
            self.add(format!("likes {}", likes.join(" and ")), "likes", &likes.into());
        }
    }

    fn add_pets(&mut self, random: &mut Random) {
        let pets = several(random, |random| (pick(random, &KINDS), pick(random, &PETS)));
        if !pets.is_empty() {
            let said: Vec<String> = pets.iter().map(|(kind, name)| format!("{kind} {name}")).collect();
            let pets: Vec<Value> =
                pets.iter().map(|(kind, name)| json!({"kind": kind, "name": name})).collect();
            self.add(format!("has {}", said.join(" and ")), "pets", &pets.into());
        }
    }

    /// The record, its members in the order of the prompt.
    fn text(&self) -> String {
        format!("{{{},{}}}", member("name", &self.name.into()), self.members.join(","))
    }
}

fn member(key: &str, value: &Value) -> String {
    format!("\"{key}\":{value}")
}

/// Up to two that differ.
fn several<T: PartialEq>(random: &mut Random, mut draw: impl FnMut(&mut Random) -> T) -> Vec<T> {
    let mut items = Vec::new();
    for _ in 0..[0, 1, 1, 2][random.below(4)] {
        let item = draw(random);
        if !items.contains(&item) {
            items.push(item);
        }
    }
    items
}
