use anygram_json_schema::algebra::{Algebra, Limits};
use anygram_json_schema::atoms::{Clause, Keys};
use anygram_json_schema::document::{Documents, Draft};
use anygram_json_schema::{read, refusal};
use std::io::Read;
use std::time::Instant;
fn main() {
    let (mut n, mut wrong, mut refused, mut blown) = (0, 0, 0, 0);
    let mut kinds = std::collections::BTreeMap::<String, usize>::new();
    let mut times = Vec::new();
    for path in std::env::args().skip(1) {
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(std::fs::File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
        for line in text.lines() {
            let item = match read::read(line) { Ok(item) => item, Err(e) => { println!("unreadable {e} {}", &line[..60]); continue } };
            let id = item.get("id").unwrap().text().unwrap().clone();
            let schema = item.get("schema").unwrap();
            let start = Instant::now();
            n += 1;
            let mut work = || -> Result<(), refusal::Refusal> {
                let documents = Documents::new(schema, [], Draft::Draft2020)?;
                let mut algebra = Algebra::new(documents, true, Limits::default());
                let root = algebra.root();
                let (mut agenda, mut seen) = (vec![root], std::collections::HashSet::new());
                while let Some(set) = agenda.pop() {
                    if !seen.insert(set) { continue }
                    for clause in algebra.expand(set)?.iter() {
                        match clause {
                            Clause::Object(o) => {
                                let keys: Vec<_> = o.every.iter().filter_map(|(k, _)| match k { Keys::Key(k) => Some(k.clone()), _ => None }).chain(o.has.iter().cloned()).collect();
                                for key in keys { agenda.push(algebra.member(o, &key)?); }
                                let rest: Vec<_> = o.every.iter().filter(|(k, _)| !matches!(k, Keys::Key(_))).map(|x| x.1).collect();
                                agenda.push(algebra.set(rest));
                                let some: Vec<_> = o.some.iter().map(|x| x.1).collect();
                                for s in some { agenda.push(algebra.set([s])); }
                            }
                            Clause::Array(a) => {
                                let far = a.every.iter().map(|(p, _)| p.from + 1).max().unwrap_or(0);
                                for at in 0..=far { agenda.push(algebra.item(a, at)); }
                                let some: Vec<_> = a.some.iter().map(|x| x.1).chain(a.contains.iter().map(|x| x.0)).collect();
                                for s in some { agenda.push(algebra.set([s])); }
                            }
                            _ => {}
                        }
                    }
                }
                times.push((start.elapsed(), seen.len(), id.clone()));
                let literals = algebra.members(root);
                for test in item.get("tests").and_then(|t| t.items()).unwrap_or_default() {
                    let valid = *test.get("valid").unwrap() == anygram_json_schema::value::Value::Bool(true);
                    let mut holds = true;
                    for &literal in literals.iter() { holds &= algebra.contains(literal, test.get("data").unwrap())?; }
                    if holds != valid {
                        wrong += 1;
                        if wrong < 30 { println!("WRONG {id} {valid} {}", test.get("description").unwrap()); }
                    }
                }
                Ok(())
            };
            if let Err(refusal) = work() {
                if refusal.kind == refusal::Kind::Limit { blown += 1 } else { refused += 1 }
                let key = format!("{:?} {:?} {}", refusal.kind, refusal.keyword, &refusal.message.chars().take(50).collect::<String>());
                *kinds.entry(key).or_default() += 1;
                if refusal.kind == refusal::Kind::Limit { println!("{id}: {refusal}"); }
            }
        }
    }
    times.sort();
    println!("{n} wrong {wrong} refused {refused} blown {blown}");
    for (k, v) in kinds { println!("{v} {k}"); }
    println!("p50 {:?} p99 {:?} max {:?}", times[times.len() / 2], times[times.len() * 99 / 100], times.last());
    println!("total {:?}", times.iter().map(|t| t.0).sum::<std::time::Duration>());
}
