//! The nineteen formats that JSON Schema asserts: seventeen as patterns, two that no pattern says.
//!
//! [`format()`] knows them by name; any other name is an annotation. [`Pattern`]s are anchored at both ends,
//! with look-ahead where two conditions hold at once. They are written here as expressions of ECMA-262, from
//! the grammars of the documents named at each. All of them mean ASCII digits and letters, and no white space
//! that is not written. They are exact. What cannot be is refused where it is asserted:
//!
//! | format | why |
//! |---|---|
//! | `idn-hostname` | a label is in Normalization Form C, and its length is that of its Punycode |
//! | `regex` | groups nest, and names and numbers refer to groups |
//!
//! `hostname` is RFC 1123, section 2.1, in all drafts: letters, digits and hyphens. Names "produced using the
//! Punycode algorithm", which the drafts include, are such. RFC 1123 does not look into labels that begin
//! with `xn--`: nor does this format, though the optional tests of the suite do.
//!
//! `regex` would take a counter of the groups that are open, beside a finite automaton for characters,
//! escapes, classes and quantifiers. That is not exact either: the names of groups differ in an alternative,
//! `\k<name>` and `\1` need a group that may come later, and `{9,10}` orders numbers of any length.
//! [`is_regex`] says whether a text is one.

mod address;
mod uri;

use std::sync::OnceLock;

use crate::pattern::{self, Limits, Pattern, PatternErrorKind};

/// What a format accepts.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Format {
    /// The texts that a pattern matches. It is anchored.
    Pattern(Pattern),
    /// What no pattern says, and why.
    Inexpressible(&'static str),
}

/// What writes the expression of a format, or why there is none.
type Write = Result<fn() -> String, &'static str>;

/// The names.
const FORMATS: [(&str, Write); 19] = [
    ("date", Ok(date)),
    ("date-time", Ok(date_time)),
    ("duration", Ok(duration)),
    ("email", Ok(|| address::email(""))),
    ("hostname", Ok(address::hostname)),
    ("idn-email", Ok(|| address::email(r"\u{80}-\u{10ffff}"))),
    ("idn-hostname", Err("a label is in Normalization Form C, and as long as its Punycode")),
    ("ipv4", Ok(address::ipv4)),
    ("ipv6", Ok(address::ipv6)),
    ("iri", Ok(|| uri::uri(true))),
    ("iri-reference", Ok(|| uri::uri_reference(true))),
    ("json-pointer", Ok(|| JSON_POINTER.to_owned())),
    ("regex", Err("groups nest, and names and numbers refer to groups")),
    ("relative-json-pointer", Ok(relative_json_pointer)),
    ("time", Ok(time)),
    ("uri", Ok(|| uri::uri(false))),
    ("uri-reference", Ok(|| uri::uri_reference(false))),
    ("uri-template", Ok(uri::uri_template)),
    ("uuid", Ok(uuid)),
];

/// The format of a name, `None` if the name is an annotation. It is parsed once, for all schemas.
pub fn format(name: &str) -> Option<&'static Format> {
    static KNOWN: [OnceLock<Option<Format>>; FORMATS.len()] = [const { OnceLock::new() }; FORMATS.len()];
    let at = FORMATS.iter().position(|(known, _)| *known == name)?;
    let make = || match FORMATS[at].1 {
        Err(why) => Some(Format::Inexpressible(why)),
        Ok(write) => pattern::parse(&format!("^(?:{})$", write())).ok().map(Format::Pattern),
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

/// The years with a 29 February.
fn leap_year() -> String {
    // Divisible by 4, as two digits, but 00.
    let by_4 = "(?:0[48]|[2468][048]|[13579][26])";
    format!(r"(?:\d\d{by_4}|(?:00|{by_4})00)")
}

/// `full-date` of RFC 3339: days are those of the month, by the Gregorian calendar in all years.
fn date() -> String {
    let month_31 = r"(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])";
    let month_30 = r"(?:0[469]|11)-(?:0[1-9]|[12]\d|30)";
    let february = r"02-(?:0[1-9]|1\d|2[0-8])";
    format!(r"(?:\d{{4}}-(?:{month_31}|{month_30}|{february})|{}-02-29)", leap_year())
}

/// The last days of months.
fn last_day() -> String {
    let leap = leap_year();
    let usual = r"\d{4}-(?:(?:0[13578]|1[02])-31|(?:0[469]|11)-30)";
    format!(r"(?:{usual}|{leap}-02-29|(?!{leap})\d{{4}}-02-28)")
}

const HOUR: &str = r"(?:[01]\d|2[0-3])";
const MINUTE: &str = r"[0-5]\d";
const FRACTION: &str = r"(?:\.\d+)?";

/// `full-time` of RFC 3339. Second 60 is there where it is 23:59 in UTC.
fn time() -> String {
    format!("(?:{}|{})", usual_time(), leap_second())
}

/// A time that is on every day.
fn usual_time() -> String {
    format!("{HOUR}:{MINUTE}:{MINUTE}{FRACTION}(?:[Zz]|[+-]{HOUR}:{MINUTE})")
}

/// The times with second 60.
fn leap_second() -> String {
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
    format!("(?:23:59:60{FRACTION}[Zz]|(?:{behind}|{ahead_hour}|{ahead}){leap})")
}

/// `date-time` of RFC 3339. A leap second ends a month in UTC (section 5.7); which month is not foreseen.
fn date_time() -> String {
    let (usual, leap) = (usual_time(), leap_second());
    // Where local time is ahead, the next day has begun.
    let is_ahead = r"[^+]*\+(?:0[1-9]|[12]\d|00:0[1-9]|00:[1-5])";
    let first = r"\d{4}-(?:0[1-9]|1[0-2])-01";
    let (date, last) = (date(), last_day());
    format!("(?:{date}[Tt]{usual}|{last}[Tt](?!{is_ahead}){leap}|{first}[Tt](?={is_ahead}){leap})")
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
