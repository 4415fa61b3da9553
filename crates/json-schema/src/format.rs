//! The nineteen formats that JSON Schema asserts, as patterns.
//!
//! [`format()`] knows them by name; any other name is an annotation. All but `regex` are [`Pattern`]s,
//! anchored at both ends, with look-ahead where two conditions hold at once. They are written here as
//! expressions of ECMA-262, from the grammars of the documents named at each. All of them mean ASCII digits
//! and letters, and no white space that is not written.
//!
//! What no regular expression of sensible size says is left out, so that these accept more than they should:
//!
//! | format | accepts also |
//! |---|---|
//! | `hostname`, `idn-hostname` | labels that begin with `xn--` and are not the Punycode of a label |
//! | `idn-hostname` | labels that are not in Normalization Form C, or too long as Punycode |
//!
//! `regex` is not regular: groups nest. It would take a counter of the groups that are open, beside a finite
//! automaton for characters, escapes, classes and quantifiers. That is not exact either: the names of groups
//! differ in an alternative, `\k<name>` and `\1` need a group that may come later, and `{9,10}` orders
//! numbers of any length. So there is no automaton here; [`is_regex`] says whether a text is one.

mod address;
mod idn;
mod uri;

use std::sync::OnceLock;

use crate::pattern::{self, Limits, Pattern, PatternErrorKind};

/// What a format accepts.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Format {
    /// The texts that a pattern matches. It is anchored.
    Pattern(Pattern),
    /// The regular expressions of ECMA-262 with the flag `u`: see [`is_regex`].
    EcmaRegex,
}

/// What writes the expression of a format.
type Write = fn() -> String;

/// The names, each with what writes its expression; of that which is not regular, nothing does.
const FORMATS: [(&str, Option<Write>); 19] = [
    ("date", Some(date)),
    ("date-time", Some(date_time)),
    ("duration", Some(duration)),
    ("email", Some(|| address::email(""))),
    ("hostname", Some(address::hostname)),
    ("idn-email", Some(|| address::email(r"\u{80}-\u{10ffff}"))),
    ("idn-hostname", Some(idn::hostname)),
    ("ipv4", Some(address::ipv4)),
    ("ipv6", Some(address::ipv6)),
    ("iri", Some(|| uri::uri(true))),
    ("iri-reference", Some(|| uri::uri_reference(true))),
    ("json-pointer", Some(|| JSON_POINTER.to_owned())),
    ("regex", None),
    ("relative-json-pointer", Some(relative_json_pointer)),
    ("time", Some(time)),
    ("uri", Some(|| uri::uri(false))),
    ("uri-reference", Some(|| uri::uri_reference(false))),
    ("uri-template", Some(uri::uri_template)),
    ("uuid", Some(uuid)),
];

/// The format of a name, `None` if the name is an annotation. It is parsed once, for all schemas.
pub fn format(name: &str) -> Option<&'static Format> {
    static KNOWN: [OnceLock<Option<Format>>; FORMATS.len()] = [const { OnceLock::new() }; FORMATS.len()];
    let at = FORMATS.iter().position(|(known, _)| *known == name)?;
    let make = || match FORMATS[at].1 {
        None => Some(Format::EcmaRegex),
        Some(write) => pattern::parse(&format!("^(?:{})$", write())).ok().map(Format::Pattern),
    };
    KNOWN[at].get_or_init(make).as_ref()
}

/// Whether a text is an expression of ECMA-262 with the flag `u`: so is what [`pattern::parse`] leaves out.
/// `None` if it exceeds a limit. Annex B, on which `pattern` falls back, does not count here: the test suite
/// of JSON Schema wants `\a` refused.
pub fn is_regex(text: &str) -> Option<bool> {
    match pattern::parse_unicode(text, Limits::default()).map_err(|error| error.kind()) {
        Ok(_) | Err(PatternErrorKind::Unsupported) => Some(true),
        Err(PatternErrorKind::Syntax) => Some(false),
        Err(PatternErrorKind::Limit) => None,
    }
}

/// `full-date` of RFC 3339: days are those of the month, by the Gregorian calendar in all years.
fn date() -> String {
    // Divisible by 4, as two digits, but 00.
    let by_4 = "(?:0[48]|[2468][048]|[13579][26])";
    let month_31 = r"(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])";
    let month_30 = r"(?:0[469]|11)-(?:0[1-9]|[12]\d|30)";
    let february = r"02-(?:0[1-9]|1\d|2[0-8])";
    let leap_day = format!(r"(?:\d\d{by_4}|(?:00|{by_4})00)-02-29");
    format!(r"(?:\d{{4}}-(?:{month_31}|{month_30}|{february})|{leap_day})")
}

const HOUR: &str = r"(?:[01]\d|2[0-3])";
const MINUTE: &str = r"[0-5]\d";
const FRACTION: &str = r"(?:\.\d+)?";

/// `full-time` of RFC 3339. Second 60 is there where it is 23:59 in UTC.
fn time() -> String {
    let usual = format!("{HOUR}:{MINUTE}:{MINUTE}{FRACTION}(?:[Zz]|[+-]{HOUR}:{MINUTE})");
    let leap = format!("{HOUR}:{MINUTE}:60{FRACTION}[+-]{HOUR}:{MINUTE}");
    // Pairs of what stands before the seconds and in the offset, hours and minutes apart: two relations.
    let any = |pairs: Vec<String>| format!("(?:{})", pairs.join("|"));
    let hours = |sign: &str, local: fn(u32) -> u32| {
        let pair = |hour| format!("{:02}:{MINUTE}:60{FRACTION}{sign}{hour:02}", local(hour));
        format!("(?={}:)", any((0..24).map(pair).collect()))
    };
    let minutes = |sign: &str, of: std::ops::Range<u32>, local: fn(u32) -> u32| {
        let pair = |minute| format!("{:02}:60{FRACTION}{sign}{HOUR}:{minute:02}", local(minute));
        format!("(?={HOUR}:{})", any(of.map(pair).collect()))
    };
    let behind = format!("{}{}", hours("-", |hour| 23 - hour), minutes("-", 0..60, |minute| 59 - minute));
    // A full hour ahead the hour before is ending.
    let ahead_hour = format!("{}{}", hours(r"\+", |hour| (hour + 23) % 24), minutes(r"\+", 0..1, |_| 59));
    let ahead = format!("{}{}", hours(r"\+", |hour| hour), minutes(r"\+", 1..60, |minute| minute - 1));
    format!("(?:{usual}|23:59:60{FRACTION}[Zz]|(?:{behind}|{ahead_hour}|{ahead}){leap})")
}

/// `date-time` of RFC 3339. The date of a leap second is any.
fn date_time() -> String {
    format!("{}[Tt]{}", date(), time())
}

/// `duration` of RFC 3339, appendix A: no unit between two others is left out, weeks stand alone.
fn duration() -> String {
    let date = r"(?:\d+D|(?:\d+Y)?\d+M(?:\d+D)?|\d+Y)";
    let time = r"T(?:\d+S|(?:\d+H)?\d+M(?:\d+S)?|\d+H)";
    format!(r"P(?:\d+W|{date}(?:{time})?|{time})")
}

/// RFC 4122 (now 9562), section 3: any version, any variant.
fn uuid() -> String {
    let hex = |n: u32| format!("[0-9A-Fa-f]{{{n}}}");
    [8, 4, 4, 4, 12].map(hex).join("-")
}

/// `json-pointer` of RFC 6901, section 3.
const JSON_POINTER: &str = r"(?:/(?:[^/~]|~[01])*)*";

/// `relative-json-pointer` of draft-handrews-relative-json-pointer-01, section 3.
fn relative_json_pointer() -> String {
    format!(r"(?:0|[1-9]\d*)(?:#|{JSON_POINTER})")
}
