//! Which texts belong to a tag, as `docs/meaning.md` defines it: for a place in a text, the places at which
//! the format can end. It shares nothing with the lowering.

use std::collections::BTreeSet;

use serde_json::Value;

/// Whether a text belongs to a format.
pub fn belongs(format: &Value, text: &[u8]) -> bool {
    Reference { text }.ends(format, 0, &[]).contains(&text.len())
}

struct Reference<'t> {
    text: &'t [u8],
}

type Ends = BTreeSet<usize>;

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().map_or(Vec::new(), |items| items.iter().filter_map(Value::as_str).collect())
}

/// The ends of a tag: a text or a list of texts.
pub fn tag_ends(tag: &Value) -> Vec<&str> {
    tag["end"].as_str().map_or_else(|| texts(&tag["end"]), |end| vec![end])
}

impl Reference<'_> {
    fn ends(&self, format: &Value, at: usize, closing: &[&str]) -> Ends {
        let inner = |at| self.ends(&format["content"], at, closing);
        match format["type"].as_str().unwrap_or("tag") {
            "const_string" => self.literal(format["value"].as_str().unwrap(), at),
            "any_text" => self.any_text(format, at, closing),
            "sequence" => self.sequence(format["elements"].as_array().unwrap(), at, closing),
            "or" => {
                let elements = format["elements"].as_array().unwrap();
                elements.iter().flat_map(|element| self.ends(element, at, closing)).collect()
            }
            "optional" => repeat(&inner, at, 0, Some(1)),
            "star" => repeat(&inner, at, 0, None),
            "plus" => repeat(&inner, at, 1, None),
            "repeat" => {
                let max = format["max"].as_i64().unwrap();
                repeat(&inner, at, format["min"].as_u64().unwrap() as usize, usize::try_from(max).ok())
            }
            "tag" => self.tag(format, at),
            "triggered_tags" => self.triggered(format, at, closing),
            "tags_with_separator" => self.separated(format, at),
            "dispatch" => {
                let rules = format["rules"].as_array().unwrap();
                let marks: Vec<&str> = rules.iter().map(|rule| rule[0].as_str().unwrap()).collect();
                let excludes = texts(&format["excludes"]);
                let behind = |mark: &str, _: usize, at: usize| {
                    let rules = rules.iter().filter(|rule| rule[0] == *mark);
                    rules.flat_map(|rule| self.ends(&rule[1], at, &[])).collect()
                };
                self.dispatch(&marks, &excludes, format["loop"].as_bool().unwrap_or(true), &behind, at)
            }
            name => panic!("the reference does not know {name}"),
        }
    }

    fn literal(&self, text: &str, at: usize) -> Ends {
        let found = self.text[at..].starts_with(text.as_bytes());
        found.then_some(at + text.len()).into_iter().collect()
    }

    fn holds(&self, from: usize, to: usize, marks: &[&str]) -> bool {
        let part = &self.text[from..to];
        marks.iter().any(|mark| part.windows(mark.len()).any(|window| window == mark.as_bytes()))
    }

    /// The texts that hold nothing of what is excluded, and nothing that ends the tag around.
    fn any_text(&self, format: &Value, at: usize, closing: &[&str]) -> Ends {
        let mut excludes = texts(&format["excludes"]);
        excludes.extend(closing.iter().filter(|end| !end.is_empty()));
        let most = format["max_chars"].as_u64();
        (at..=self.text.len())
            .filter(|&to| !self.holds(at, to, &excludes))
            .filter(|&to| match (most, std::str::from_utf8(&self.text[at..to])) {
                (None, _) => true,
                (Some(most), Ok(part)) => part.chars().count() as u64 <= most,
                (Some(_), Err(_)) => false,
            })
            .collect()
    }

    fn sequence(&self, elements: &[Value], at: usize, closing: &[&str]) -> Ends {
        elements.iter().fold(Ends::from([at]), |ends, element| {
            ends.into_iter().flat_map(|at| self.ends(element, at, closing)).collect()
        })
    }

    fn tag(&self, tag: &Value, at: usize) -> Ends {
        let Some(at) = self.literal(tag["begin"].as_str().unwrap(), at).pop_first() else {
            return Ends::new();
        };
        self.content_and_end(tag, at)
    }

    fn content_and_end(&self, tag: &Value, at: usize) -> Ends {
        let ends = tag_ends(tag);
        let contents = self.ends(&tag["content"], at, &ends);
        contents.into_iter().flat_map(|at| ends.iter().flat_map(move |end| self.literal(end, at))).collect()
    }

    /// Free text, and behind the first mark that ends in it what the mark leads to.
    fn dispatch(
        &self,
        marks: &[&str],
        excludes: &[&str],
        repeats: bool,
        behind: &dyn Fn(&str, usize, usize) -> Ends,
        at: usize,
    ) -> Ends {
        let (mut all, mut agenda, mut seen) = (Ends::new(), vec![at], Ends::new());
        while let Some(at) = agenda.pop() {
            if !seen.insert(at) {
                continue;
            }
            for to in at..=self.text.len() {
                let ends_here = |mark: &&str| self.text[at..to].ends_with(mark.as_bytes());
                if excludes.iter().any(|mark| ends_here(mark)) {
                    break;
                }
                let found: Vec<&str> = marks.iter().copied().filter(|mark| ends_here(mark)).collect();
                if found.is_empty() {
                    all.insert(to);
                    continue;
                }
                let ends = found.iter().flat_map(|mark| behind(mark, at, to));
                if repeats {
                    agenda.extend(ends)
                } else {
                    all.extend(ends)
                }
                break;
            }
        }
        all
    }

    fn triggered(&self, format: &Value, at: usize, closing: &[&str]) -> Ends {
        let (triggers, tags) = (texts(&format["triggers"]), format["tags"].as_array().unwrap());
        let is = |name: &str| format[name].as_bool().unwrap_or(false);
        let mut excludes = texts(&format["excludes"]);
        excludes.extend(closing.iter().filter(|end| !end.is_empty()));
        let behind = |trigger: &str, _: usize, at: usize| -> Ends {
            let rests = tags
                .iter()
                .filter_map(|tag| Some((tag, tag["begin"].as_str().unwrap().strip_prefix(trigger)?)));
            let begun = rests.filter_map(|(tag, rest)| Some((tag, self.literal(rest, at).pop_first()?)));
            begun.flat_map(|(tag, at)| self.content_and_end(tag, at)).collect()
        };
        let others = |at| self.dispatch(&triggers, &excludes, !is("stop_after_first"), &behind, at);
        if !is("at_least_one") {
            return others(at);
        }
        let first: Ends = tags.iter().flat_map(|tag| self.tag(tag, at)).collect();
        if is("stop_after_first") { first } else { first.into_iter().flat_map(others).collect() }
    }

    fn separated(&self, format: &Value, at: usize) -> Ends {
        let is = |name: &str| format[name].as_bool().unwrap_or(false);
        let one = |at| -> Ends {
            format["tags"].as_array().unwrap().iter().flat_map(|tag| self.tag(tag, at)).collect()
        };
        let mut all = one(at);
        if !is("stop_after_first") {
            let separator = format["separator"].as_str().unwrap();
            let next = |at| self.literal(separator, at).into_iter().flat_map(one).collect();
            all = all.into_iter().flat_map(|at| repeat(&next, at, 0, None)).collect();
        }
        if !is("at_least_one") {
            all.insert(at);
        }
        all
    }
}

/// Where a format can end that stands from `min` to `max` times.
fn repeat(content: &dyn Fn(usize) -> Ends, at: usize, min: usize, max: Option<usize>) -> Ends {
    let (mut ends, mut all) = (Ends::from([at]), Ends::new());
    for n in 0.. {
        if n >= min {
            let n_known = all.len();
            all.extend(&ends);
            if n > min && all.len() == n_known {
                break;
            }
        }
        if max.is_some_and(|max| n >= max) || ends.is_empty() {
            break;
        }
        ends = ends.into_iter().flat_map(content).collect();
    }
    all
}
