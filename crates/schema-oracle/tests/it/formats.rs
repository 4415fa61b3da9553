//! The checkers of formats against readers that others wrote, on random strings.

use anygram_bits::Random;
use anygram_schema_oracle::formats::accepts;
use fluent_uri::{Iri, IriRef, Uri, UriRef};

const N_STRINGS: usize = 100_000;

/// Random strings of pieces.
fn strings(seed: u64, longest: usize, pieces: &[&str]) -> Vec<String> {
    let mut random = Random::new(seed);
    (0..N_STRINGS)
        .map(|_| (0..random.below(longest + 1)).map(|_| *random.choose(pieces)).collect::<String>())
        .collect()
}

/// Whether the format agrees with another reader on all strings, some of which it accepts.
fn agrees(format: &str, strings: &[String], other: impl Fn(&str) -> bool) {
    let mut n_accepted = 0;
    for text in strings {
        let accepted = accepts(format, text) == Some(true);
        assert_eq!(accepted, other(text), "{format}: {text:?}");
        n_accepted += usize::from(accepted);
    }
    assert!(n_accepted >= 50 && n_accepted < strings.len(), "{format}: {n_accepted}");
}

#[test]
fn addresses_are_those_of_the_standard_library() {
    let pieces = [".", ".", ".", "0", "1", "9", "25", "255", "256", "01"];
    let four = strings(1, 7, &["0.", "255.", "12.", "9", "256", "01", "1.2", "3.4", "."]);
    agrees("ipv4", &four, |text| text.parse::<std::net::Ipv4Addr>().is_ok());
    agrees(
        "ipv6",
        &strings(2, 9, &["::", "::", ":", "1:", "1:", "a", "Ff0", "0123", "12345", "1.2.3.4", "%1"]),
        |text| text.parse::<std::net::Ipv6Addr>().is_ok(),
    );
    for text in strings(3, 8, &pieces) {
        assert_eq!(accepts("ipv4", &text), Some(text.parse::<std::net::Ipv4Addr>().is_ok()), "{text}");
    }
}

#[test]
fn references_are_those_of_fluent_uri() {
    let pieces = [
        "a",
        "Z",
        "1",
        ":",
        ":",
        "/",
        "/",
        "//",
        "?",
        "#",
        "@",
        "[",
        "]",
        "[::1]",
        "[v1.a]",
        "%4f",
        "%",
        "-",
        ".",
        "~",
        "!",
        ",",
        "'",
        " ",
        "\"",
        "<",
        "\\",
        "^",
        "{",
        "|",
        "é",
        "\u{e000}",
        "\u{10000}",
        "\u{fffe}",
        "\u{200e}",
        "\n",
        "http",
    ];
    for (seed, longest) in [(4, 4), (5, 8)] {
        let strings = strings(seed, longest, &pieces);
        agrees("uri", &strings, |text| Uri::parse(text).is_ok());
        agrees("uri-reference", &strings, |text| UriRef::parse(text).is_ok());
        agrees("iri", &strings, |text| Iri::parse(text).is_ok());
        agrees("iri-reference", &strings, |text| IriRef::parse(text).is_ok());
    }
}

/// What `FORMATS.md` says of some formats, as patterns.
#[test]
fn small_formats_are_their_patterns() {
    let clock = "(?:[01][0-9]|2[0-3]):[0-5][0-9]";
    let daytime = "T(?:[0-9]+S|[0-9]+M(?:[0-9]+S)?|[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?)";
    let date = "(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)";
    let atom = "[A-Za-z0-9!#$%&'*+\\-/=?^_`{|}~]+";
    let label = "[A-Za-z0-9](?:[A-Za-z0-9\\-]*[A-Za-z0-9])?";
    let quoted = r#""(?:[ !#-\[\]-~]|\\[ -~])*""#;
    let literal = "[!#$&-;=?-\\[\\]_a-z~\\xa0-\\ud7ff\\ue000-\\ufdcf\\ufdf0-\\uffef]|%[0-9A-Fa-f]{2}";
    let unit = "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})";
    let variable = format!("{unit}(?:\\.?{unit})*(?:\\*|:[1-9][0-9]{{0,3}})?");
    let expression = format!("\\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\\}}");
    let cases = [
        // No leap second can be drawn.
        (
            "time",
            "12:59: 23:00:0 24: 5 9 0 .5 Z z +23:00 -1 T",
            format!("{clock}:[0-5][0-9](?:\\.[0-9]+)?(?:[Zz]|[+-]{clock})"),
        ),
        (
            "duration",
            "P P T 1 0 1D D 2M 3Y W 1W H 4H 5S",
            format!("P(?:[0-9]+W|{date}(?:{daytime})?|{daytime})"),
        ),
        ("json-pointer", "/ / ~0 ~1 ~ é # a", "(?:/(?:[^/~]|~[01])*)*".to_owned()),
        (
            "relative-json-pointer",
            "0 1 2 # / ~0 ~ é",
            "(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^/~]|~[01])*)*)".to_owned(),
        ),
        (
            "email",
            "a Z ! . - @ @a \" \\ é ~ [ ]",
            format!("(?:{atom}(?:\\.{atom})*|{quoted})@{label}(?:\\.{label})*"),
        ),
        (
            "uri-template",
            "a A { } {a {+b } , : :1 0 * . %41 % é ' \" < \u{fdd0} \u{f8ff}",
            format!("(?:{literal}|{expression})*"),
        ),
        (
            "uuid",
            "01234567-89aB- 89ab-cdEF-0123456789ab 89aB- 0123456789aB - g",
            "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}".to_owned(),
        ),
    ];
    for (format, pieces, pattern) in cases {
        let pattern = regress::Regex::with_flags(&format!("^(?:{pattern})$"), "u").unwrap();
        let pieces: Vec<&str> = pieces.split(' ').collect();
        agrees(format, &strings(6, 7, &pieces), |text| pattern.find(text).is_some());
    }
}

#[test]
fn every_minute_has_one_leap_second_of_each_offset() {
    let clock = |minutes: i32| format!("{:02}:{:02}", minutes / 60, minutes % 60);
    for local in 0..24 * 60 {
        for sign in ["+", "-"] {
            let allowed: Vec<i32> = (0..24 * 60)
                .filter(|zone| {
                    accepts("time", &format!("{}:60{sign}{}", clock(local), clock(*zone))) == Some(true)
                })
                .collect();
            let expected = if sign == "+" { local + 1 } else { 24 * 60 - 1 - local } % (24 * 60);
            assert_eq!(allowed, [expected], "{local} {sign}");
        }
    }
}

#[test]
fn dates_are_those_of_the_calendar() {
    let mut n_days = 0;
    for year in 0..10_000 {
        for month in 0..14 {
            n_days += (0..40)
                .filter(|day| accepts("date", &format!("{year:04}-{month:02}-{day:02}")) == Some(true))
                .count();
        }
    }
    // 25 cycles of 400 years with 97 leap days.
    assert_eq!(n_days, 25 * (400 * 365 + 97));
}

#[test]
fn leap_seconds_end_a_month_in_utc() {
    let texts = |valid: bool| match valid {
        true => [
            "1998-12-31T23:59:60Z",
            "2024-02-29T23:59:60.5+00:00",
            "2023-02-28T23:59:60-00:00",
            "1998-12-31T15:59:60-08:00",
            "1999-01-01T00:59:60+01:00",
            "2024-03-01T23:58:60+23:59",
        ],
        false => [
            "1998-12-30T23:59:60Z",
            "2024-02-28T23:59:60.5+00:00",
            "1999-01-01T23:59:60-00:00",
            "1998-12-01T15:59:60-08:00",
            "1998-12-31T00:59:60+01:00",
            "2024-02-29T23:58:60+23:59",
        ],
    };
    for valid in [true, false] {
        for text in texts(valid) {
            assert_eq!(accepts("date-time", text), Some(valid), "{text}");
        }
    }
    assert_eq!(accepts("color", ""), None);
}

#[test]
fn addresses_of_mail_have_their_own_literals() {
    let accepted =
        "a@[001.02.3.255] a@[IPv6:1:2:3:4:5:6:7:8] a@[ipv6:1:2::3:4:5:6] a@[IPv6:1:2:3:4::1.2.3.04]";
    let refused = "a@[0001.2.3.4] a@[256.1.1.1] a@[IPv6:1:2::3:4:5:6:7] a@[IPv6:1:2:3:4:5::1.2.3.4] a@[x:y]";
    for (texts, valid) in [(accepted, true), (refused, false)] {
        for text in texts.split(' ') {
            assert_eq!(accepts("email", text), Some(valid), "{text}");
        }
    }
}
