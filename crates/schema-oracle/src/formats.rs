//! The formats, as hand-written checkers. `FORMATS.md` beside this crate's manifest says which strings each
//! accepts, in terms from which they can be written a second time.

use std::sync::LazyLock;

use crate::idna;

/// The formats that constrain strings. All others are annotations.
pub const NAMES: [&str; 19] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Whether a string has a format; `None` if the name is not one of [`NAMES`].
pub fn accepts(format: &str, text: &str) -> Option<bool> {
    Some(match format {
        "date" => date(text),
        "date-time" => date_time(text),
        "duration" => duration(text),
        "email" => email(text, Alphabet::Ascii),
        "hostname" => idna::hostname(text),
        "idn-email" => email(text, Alphabet::Unicode),
        "idn-hostname" => idna::idn_hostname(text),
        "ipv4" => ipv4(text),
        "ipv6" => ipv6(text),
        "iri" => reference(text, Alphabet::Unicode, Kind::Absolute),
        "iri-reference" => reference(text, Alphabet::Unicode, Kind::AnyReference),
        "json-pointer" => json_pointer(text),
        "regex" => regress::Regex::with_flags(text, "u").is_ok(),
        "relative-json-pointer" => relative_json_pointer(text),
        "time" => time(text),
        "uri" => reference(text, Alphabet::Ascii, Kind::Absolute),
        "uri-reference" => reference(text, Alphabet::Ascii, Kind::AnyReference),
        "uri-template" => uri_template(text),
        "uuid" => uuid(text),
        _ => return None,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Alphabet {
    Ascii,
    Unicode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Absolute,
    AnyReference,
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The number that exactly `length` digits write.
fn number(text: &str, length: usize) -> Option<u32> {
    if text.len() == length && are_digits(text) { text.parse().ok() } else { None }
}

// Dates and times: RFC 3339.

fn date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn date_time(text: &str) -> bool {
    let Some((day, clock)) = text.split_once(['T', 't']) else { return false };
    if !date(day) || !time(clock) {
        return false;
    }
    if clock.get(5..8) != Some(":60") {
        return true;
    }
    // In UTC, a leap second ends a month.
    let is_ahead = clock.split_once('+').is_some_and(|(_, zone)| zone != "00:00");
    let (month, number) = day.split_at(8);
    let next = number.parse().map_or(0, |number: u32| number + 1);
    if is_ahead { number == "01" } else { !date(&format!("{month}{next:02}")) }
}

/// Minutes of a day of `hh:mm`.
fn minutes(text: &str) -> Option<u32> {
    let (hours, minutes) = text.split_once(':')?;
    let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
    if hours < 24 && minutes < 60 { Some(hours * 60 + minutes) } else { None }
}

fn time(text: &str) -> bool {
    let Some(at) = text.find(['Z', 'z', '+', '-']) else { return false };
    let (clock, zone) = text.split_at(at);
    let (Some(zone), Some((clock, seconds))) = (zone_minutes(zone), clock.rsplit_once(':')) else {
        return false;
    };
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let (Some(minutes), Some(seconds)) = (minutes(clock), number(seconds, 2)) else { return false };
    let day = 24 * 60;
    let utc = (minutes + day - zone) % day;
    are_digits(fraction) && (seconds < 60 || (seconds == 60 && utc == day - 1))
}

/// By how many minutes of a day local time is later than UTC.
fn zone_minutes(zone: &str) -> Option<u32> {
    if zone == "Z" || zone == "z" {
        Some(0)
    } else if let Some(later) = zone.strip_prefix('+') {
        minutes(later)
    } else {
        minutes(zone.strip_prefix('-')?).map(|earlier| 24 * 60 - earlier)
    }
}

fn duration(text: &str) -> bool {
    let Some(text) = text.strip_prefix('P') else { return false };
    if units(text).as_deref() == Some("W") {
        return true;
    }
    let (day, clock) = match text.split_once('T') {
        Some((day, clock)) => (day, Some(clock)),
        None => (text, None),
    };
    let is =
        |text: &str, allowed: &[&str]| units(text).is_some_and(|units| allowed.contains(&units.as_str()));
    let day_fits = is(day, &["D", "M", "MD", "Y", "YM", "YMD"]);
    match clock {
        None => day_fits,
        Some(clock) => (day.is_empty() || day_fits) && is(clock, &["S", "M", "MS", "H", "HM", "HMS"]),
    }
}

/// The letters of a row of numbers that are each followed by one.
fn units(text: &str) -> Option<String> {
    let mut units = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = rest.find(|c: char| !c.is_ascii_digit()).filter(|at| *at > 0)?;
        let letter = rest[at..].chars().next()?;
        units.push(letter);
        rest = &rest[at + letter.len_utf8()..];
    }
    Some(units)
}

fn uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let is_hex = |group: &str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]) && groups.iter().all(|group| is_hex(group))
}

// Addresses of machines: RFC 3986.

fn ipv4(text: &str) -> bool {
    let is_octet = |octet: &str| {
        are_digits(octet)
            && (octet == "0" || !octet.starts_with('0'))
            && octet.parse().is_ok_and(|octet: u32| octet < 256)
    };
    text.split('.').count() == 4 && text.split('.').all(is_octet)
}

fn ipv6(text: &str) -> bool {
    ipv6_beside(text, 7, ipv4)
}

/// An IPv6 address, of which at most so many groups stand beside a `::`.
fn ipv6_beside(text: &str, most: usize, is_ipv4: fn(&str) -> bool) -> bool {
    match text.split_once("::") {
        // A second `::`, or a third colon, leaves an empty group behind.
        Some((before, after)) => {
            let before = if before.is_empty() { Some(0) } else { groups(before, |_| false) };
            let after = if after.is_empty() { Some(0) } else { groups(after, is_ipv4) };
            before.zip(after).is_some_and(|(before, after)| before + after <= most)
        }
        None => groups(text, is_ipv4) == Some(8),
    }
}

/// How many groups of an address stand there; the last may be an IPv4 address, where that is one.
fn groups(text: &str, is_ipv4: fn(&str) -> bool) -> Option<usize> {
    let parts: Vec<&str> = text.split(':').collect();
    let is_hex =
        |part: &str| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut n_groups = 0;
    for (at, part) in parts.iter().enumerate() {
        n_groups += match () {
            () if is_hex(part) => 1,
            () if at + 1 == parts.len() && is_ipv4(part) => 2,
            () => return None,
        };
    }
    Some(n_groups)
}

// Mail: RFC 5321, RFC 6531.

fn email(text: &str, alphabet: Alphabet) -> bool {
    // No domain and no literal has an `@`.
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let other = |c: char| alphabet == Alphabet::Unicode && !c.is_ascii();
    let is_atom_character =
        |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || other(c);
    let is_atom = |atom: &str| !atom.is_empty() && atom.chars().all(is_atom_character);
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || other(c))
    };
    let local_fits = local.split('.').all(is_atom) || is_quoted(local, other);
    let literal = domain.strip_prefix('[').and_then(|domain| domain.strip_suffix(']'));
    local_fits && literal.map_or_else(|| domain.split('.').all(is_label), is_address_literal)
}

fn is_quoted(text: &str, other: impl Fn(char) -> bool) -> bool {
    let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let Some(inside) = inside.filter(|_| text.len() >= 2) else { return false };
    let is_printable = |c: char| matches!(c, ' '..='~');
    let mut characters = inside.chars();
    while let Some(c) = characters.next() {
        let fits = match c {
            '"' => false,
            '\\' => characters.next().is_some_and(is_printable),
            _ => is_printable(c) || other(c),
        };
        if !fits {
            return false;
        }
    }
    true
}

fn is_address_literal(text: &str) -> bool {
    let tag = text.get(..5).filter(|tag| tag.eq_ignore_ascii_case("IPv6:"));
    if tag.is_some() { ipv6_beside(&text[5..], 6, octets) } else { octets(text) }
}

/// Four octets, with leading zeros or not.
fn octets(text: &str) -> bool {
    let is_octet = |octet: &str| {
        are_digits(octet) && octet.len() <= 3 && octet.parse().is_ok_and(|octet: u32| octet < 256)
    };
    text.split('.').count() == 4 && text.split('.').all(is_octet)
}

// References: RFC 3986, RFC 3987.

/// Whether each unit of a text is a percent-encoded byte, or a character that is allowed.
fn all_units(text: &str, allowed: impl Fn(char) -> bool) -> bool {
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        let mut is_hex = || characters.next().is_some_and(|c| c.is_ascii_hexdigit());
        let fits = if c == '%' { is_hex() && is_hex() } else { allowed(c) };
        if !fits {
            return false;
        }
    }
    true
}

fn is_ucschar(c: char) -> bool {
    match c {
        '\u{a0}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{ffef}' => true,
        '\u{10000}'..='\u{dffff}' => u32::from(c) & 0xffff <= 0xfffd,
        '\u{e1000}'..='\u{efffd}' => true,
        _ => false,
    }
}

fn is_iprivate(c: char) -> bool {
    matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}')
}

fn is_sub_delimiter(c: char) -> bool {
    "!$&'()*+,;=".contains(c)
}

fn is_unreserved(c: char, alphabet: Alphabet) -> bool {
    c.is_ascii_alphanumeric() || "-._~".contains(c) || (alphabet == Alphabet::Unicode && is_ucschar(c))
}

fn is_path_character(c: char, alphabet: Alphabet) -> bool {
    is_unreserved(c, alphabet) || is_sub_delimiter(c) || c == ':' || c == '@'
}

fn reference(text: &str, alphabet: Alphabet, kind: Kind) -> bool {
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    let in_fragment = |c| is_path_character(c, alphabet) || c == '/' || c == '?';
    let in_query = |c| in_fragment(c) || (alphabet == Alphabet::Unicode && is_iprivate(c));
    // Without a scheme no colon stands before the first slash of a path, so one that does ends a scheme.
    let first = text.split('/').next().unwrap_or_default();
    let (scheme, hierarchy) = match first.find(':') {
        Some(at) => (Some(&text[..at]), &text[at + 1..]),
        None => (None, text),
    };
    scheme.map_or(kind == Kind::AnyReference, is_scheme)
        && is_hierarchy(hierarchy, alphabet)
        && all_units(query, in_query)
        && all_units(fragment, in_fragment)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn is_hierarchy(text: &str, alphabet: Alphabet) -> bool {
    let (authority, path) = match text.strip_prefix("//") {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (Some(authority), path)
        }
        None => (None, text),
    };
    authority.is_none_or(|authority| is_authority(authority, alphabet))
        && all_units(path, |c| is_path_character(c, alphabet) || c == '/')
}

fn is_authority(text: &str, alphabet: Alphabet) -> bool {
    let in_name = |c| is_unreserved(c, alphabet) || is_sub_delimiter(c);
    let (user, rest) = text.split_once('@').unwrap_or(("", text));
    let host_fits;
    let port;
    if let Some(literal) = rest.strip_prefix('[') {
        let Some((literal, after)) = literal.split_once(']') else { return false };
        host_fits = ipv6(literal) || is_future_address(literal);
        port = after;
    } else {
        let (host, after) = rest.split_at(rest.find(':').unwrap_or(rest.len()));
        host_fits = all_units(host, in_name);
        port = after;
    }
    let digits = if port.is_empty() { Some("") } else { port.strip_prefix(':') };
    host_fits
        && digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        && all_units(user, |c| in_name(c) || c == ':')
}

fn is_future_address(text: &str) -> bool {
    let Some((version, address)) = text.strip_prefix(['v', 'V']).and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    let in_address = |c| is_unreserved(c, Alphabet::Ascii) || is_sub_delimiter(c) || c == ':';
    !version.is_empty()
        && version.bytes().all(|byte| byte.is_ascii_hexdigit())
        && !address.is_empty()
        && address.chars().all(in_address)
}

// Templates: RFC 6570.

fn uri_template(text: &str) -> bool {
    let mut parts = text.split('{');
    let literals = parts.next().is_some_and(is_template_literal);
    literals
        && parts.all(|part| {
            part.split_once('}').is_some_and(|(expression, literal)| {
                is_expression(expression) && is_template_literal(literal)
            })
        })
}

fn is_template_literal(text: &str) -> bool {
    all_units(text, |c| {
        matches!(c, '!' | '#' | '$' | '&' | '\'' | '('..=';' | '=' | '?'..='[' | ']' | '_' | 'a'..='z' | '~')
            || is_ucschar(c)
            || is_iprivate(c)
    })
}

fn is_expression(text: &str) -> bool {
    let variables =
        text.strip_prefix(['+', '#', '.', '/', ';', '?', '&', '=', ',', '!', '@', '|']).unwrap_or(text);
    variables.split(',').all(|variable| match (variable.strip_suffix('*'), variable.split_once(':')) {
        (Some(name), _) => is_variable_name(name),
        (None, Some((name, length))) => {
            is_variable_name(name) && length.len() <= 4 && are_digits(length) && !length.starts_with('0')
        }
        (None, None) => is_variable_name(variable),
    })
}

fn is_variable_name(text: &str) -> bool {
    text.split('.').all(|part| !part.is_empty() && all_units(part, |c| c.is_ascii_alphanumeric() || c == '_'))
}

// Pointers: RFC 6901.

fn json_pointer(text: &str) -> bool {
    let starts = text.is_empty() || text.starts_with('/');
    starts && text.split('~').skip(1).all(|after| after.starts_with(['0', '1']))
}

fn relative_json_pointer(text: &str) -> bool {
    static UP: LazyLock<regress::Regex> =
        LazyLock::new(|| regress::Regex::with_flags("^(?:0|[1-9][0-9]*)", "u").expect("a pattern of ours"));
    let Some(up) = UP.find(text) else { return false };
    let rest = &text[up.end()..];
    rest == "#" || json_pointer(rest)
}
