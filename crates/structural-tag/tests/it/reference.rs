//! Which texts belong to a tag, as `docs/meaning.md` defines it: for a place in a text, the places at which
//! the format can end. It shares nothing with the lowering.
//!
//! Where a tag is about tokens, each letter is a token of its own, and capital letters are special tokens,
//! which no text holds: the id of `a` is 0, of `b` 1, of `S` 2 and of `T` 3.

use std::collections::BTreeSet;

use serde_json::Value;

/// Whether a text belongs to a format, in some tokens: in one, if the format bounds them.
pub fn belongs(format: &Value, text: &[u8]) -> bool {
    belongs_in_tokens(format, text, &[text.len()])
}

/// The same of a text that is written in tokens, which end at these places.
pub fn belongs_in_tokens(format: &Value, text: &[u8], tokens: &[usize]) -> bool {
    Reference { text, tokens }.ends(format, 0, (&[], false)).contains(&text.len())
}

struct Reference<'t> {
    text: &'t [u8],
    /// Where its tokens end.
    tokens: &'t [usize],
}

type Ends = BTreeSet<usize>;

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().map_or(Vec::new(), |items| items.iter().filter_map(Value::as_str).collect())
}

/// The ends of a tag: a text or a list of texts.
pub fn tag_ends(tag: &Value) -> Vec<&str> {
    match &tag["end"] {
        end @ Value::Object(_) => vec![letter(end)],
        end => end.as_str().map_or_else(|| texts(end), |end| vec![end]),
    }
}

/// The letter of a token, by its name or id.
fn letter(token: &Value) -> &'static str {
    let token = token.get("token").unwrap_or(token);
    match (token.as_u64(), token.as_str()) {
        (Some(id), _) => ["a", "b", "S", "T"][id as usize],
        (_, Some("<|s|>")) => "S",
        _ => "T",
    }
}

fn letters(tokens: &Value) -> Vec<&'static str> {
    tokens.as_array().map_or(Vec::new(), |tokens| tokens.iter().map(letter).collect())
}

fn begin(tag: &Value) -> &str {
    tag["begin"].as_str().unwrap_or_else(|| letter(&tag["begin"]))
}

/// What ends the tag around, and whether that is a token.
type Closing<'e> = (&'e [&'e str], bool);

fn of_kind((ends, are_tokens): Closing<'_>, is_of_tokens: bool) -> Vec<&str> {
    ends.iter().copied().filter(|end| !end.is_empty() && are_tokens == is_of_tokens).collect()
}

impl Reference<'_> {
    fn ends(&self, format: &Value, at: usize, closing: Closing<'_>) -> Ends {
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
            "triggered_tags" => self.triggered(format, at, closing, false),
            "tags_with_separator" => self.separated(format, at),
            "dispatch" => {
                let rules = format["rules"].as_array().unwrap();
                let marks: Vec<&str> = rules.iter().map(|rule| rule[0].as_str().unwrap()).collect();
                let excludes = texts(&format["excludes"]);
                let behind = |mark: &str, _: usize, at: usize| {
                    let rules = rules.iter().filter(|rule| rule[0] == *mark);
                    rules.flat_map(|rule| self.ends(&rule[1], at, (&[], false))).collect()
                };
                self.dispatch(
                    &marks,
                    &excludes,
                    format["loop"].as_bool().unwrap_or(true),
                    &behind,
                    (at, false),
                )
            }
            "token" => self.literal(letter(format), at),
            "exclude_token" => self.any_token(&format["exclude_tokens"], at, closing),
            "any_tokens" => {
                let most = format["max_tokens"].as_u64().map(|most| most as usize);
                repeat(&|at| self.any_token(&format["exclude_tokens"], at, closing), at, 0, most)
            }
            "token_dispatch" => {
                let rules = format["rules"].as_array().unwrap();
                let marks: Vec<&str> = rules.iter().map(|rule| letter(&rule[0])).collect();
                let excludes = letters(&format["exclude_tokens"]);
                let behind = |mark: &str, _: usize, at: usize| {
                    let rules = rules.iter().filter(|rule| letter(&rule[0]) == mark);
                    rules.flat_map(|rule| self.ends(&rule[1], at, (&[], false))).collect()
                };
                self.dispatch(
                    &marks,
                    &excludes,
                    format["loop"].as_bool().unwrap_or(true),
                    &behind,
                    (at, true),
                )
            }
            "token_triggered_tags" => self.triggered(format, at, closing, true),
            "qwen_xml_parameter" => self.members(at, &BTreeSet::new()),
            name => panic!("the reference does not know {name}"),
        }
    }

    fn any_token(&self, excludes: &Value, at: usize, closing: Closing<'_>) -> Ends {
        let excludes = letters(excludes).into_iter().chain(of_kind(closing, true));
        let found =
            self.text.get(at).filter(|&&token| excludes.clone().all(|other| other.as_bytes() != [token]));
        found.map(|_| at + 1).into_iter().collect()
    }

    /// Members with any names, none of them one of those that were written, with blanks before, between and
    /// behind them.
    fn members(&self, at: usize, written: &BTreeSet<&[u8]>) -> Ends {
        let rest = &self.text[at..];
        let n_blanks = rest.len() - rest.trim_ascii_start().len();
        let mut ends: Ends = (at..=at + n_blanks).collect();
        let member = rest[n_blanks..].strip_prefix(b"<parameter=");
        let parts = member.and_then(|member| {
            let (key, behind) = member.split_at(member.iter().position(|&byte| byte == b'>')?);
            let closes = |part: &[u8]| part == b"</parameter>";
            Some((key, behind.windows("</parameter>".len()).position(closes)? + "</parameter>".len()))
        });
        if let Some((key, n_behind)) = parts {
            let is_name = key.first().is_some_and(|byte| !byte.is_ascii_digit() && !b".-".contains(byte))
                && key.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(byte));
            if is_name && !written.contains(key) {
                let written = written.iter().copied().chain([key]).collect();
                let at = at + n_blanks + "<parameter=".len() + key.len() + n_behind;
                ends.extend(self.members(at, &written));
            }
        }
        ends
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
    fn any_text(&self, format: &Value, at: usize, closing: Closing<'_>) -> Ends {
        let mut excludes = texts(&format["excludes"]);
        excludes.extend(of_kind(closing, false));
        let most = format["max_chars"].as_u64();
        let tokens = |to: usize| {
            let begins = [0].into_iter().chain(self.tokens.iter().copied());
            begins.zip(self.tokens).filter(|&(begin, &end)| begin.max(at) < end.min(to)).count() as u64
        };
        (at..=self.text.len())
            .filter(|&to| format["max_tokens"].as_u64().is_none_or(|most| tokens(to) <= most))
            .filter(|&to| !self.text[at..to].iter().any(u8::is_ascii_uppercase))
            .filter(|&to| !self.holds(at, to, &excludes))
            .filter(|&to| match (most, std::str::from_utf8(&self.text[at..to])) {
                (None, _) => true,
                (Some(most), Ok(part)) => part.chars().count() as u64 <= most,
                (Some(_), Err(_)) => false,
            })
            .collect()
    }

    fn sequence(&self, elements: &[Value], at: usize, closing: Closing<'_>) -> Ends {
        elements.iter().fold(Ends::from([at]), |ends, element| {
            ends.into_iter().flat_map(|at| self.ends(element, at, closing)).collect()
        })
    }

    fn tag(&self, tag: &Value, at: usize) -> Ends {
        let Some(at) = self.literal(begin(tag), at).pop_first() else {
            return Ends::new();
        };
        self.content_and_end(tag, at)
    }

    fn content_and_end(&self, tag: &Value, at: usize) -> Ends {
        let ends = tag_ends(tag);
        let contents = self.ends(&tag["content"], at, (&ends, tag["end"].is_object()));
        contents.into_iter().flat_map(|at| ends.iter().flat_map(move |end| self.literal(end, at))).collect()
    }

    /// Free text, and behind the first mark that ends in it what the mark leads to.
    fn dispatch(
        &self,
        marks: &[&str],
        excludes: &[&str],
        repeats: bool,
        behind: &dyn Fn(&str, usize, usize) -> Ends,
        (at, is_of_tokens): (usize, bool),
    ) -> Ends {
        let (mut all, mut agenda, mut seen) = (Ends::new(), vec![at], Ends::new());
        while let Some(at) = agenda.pop() {
            if !seen.insert(at) {
                continue;
            }
            for to in at..=self.text.len() {
                let ends_here = |mark: &&str| self.text[at..to].ends_with(mark.as_bytes());
                if excludes.iter().any(ends_here) {
                    break;
                }
                let found: Vec<&str> = marks.iter().copied().filter(ends_here).collect();
                if found.is_empty() {
                    if !is_of_tokens && self.text[at..to].iter().any(u8::is_ascii_uppercase) {
                        break;
                    }
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

    fn triggered(&self, format: &Value, at: usize, closing: Closing<'_>, is_of_tokens: bool) -> Ends {
        let tags = format["tags"].as_array().unwrap();
        let (triggers, mut excludes) = match is_of_tokens {
            true => (letters(&format["trigger_tokens"]), letters(&format["exclude_tokens"])),
            false => (texts(&format["triggers"]), texts(&format["excludes"])),
        };
        let is = |name: &str| format[name].as_bool().unwrap_or(false);
        excludes.extend(of_kind(closing, is_of_tokens));
        let behind = |trigger: &str, _: usize, at: usize| -> Ends {
            let rests = tags.iter().filter_map(|tag| Some((tag, begin(tag).strip_prefix(trigger)?)));
            let begun = rests.filter_map(|(tag, rest)| Some((tag, self.literal(rest, at).pop_first()?)));
            begun.flat_map(|(tag, at)| self.content_and_end(tag, at)).collect()
        };
        let others =
            |at| self.dispatch(&triggers, &excludes, !is("stop_after_first"), &behind, (at, is_of_tokens));
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
