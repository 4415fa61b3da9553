//! References: RFC 3986 and, with more characters, RFC 3987; and templates of them, RFC 6570.

use super::address;

/// `ucschar` of RFC 3987, section 2.2, to stand in a class.
fn ucschar() -> String {
    let mut ranges = r"\u{a0}-\u{d7ff}\u{f900}-\u{fdcf}\u{fdf0}-\u{ffef}".to_owned();
    for plane in 1..=14 {
        let start = if plane == 14 { 0x1000 } else { 0 };
        ranges += &format!(r"\u{{{:x}}}-\u{{{:x}}}", plane * 0x1_0000 + start, plane * 0x1_0000 + 0xfffd);
    }
    ranges
}

/// `iprivate` of RFC 3987, section 2.2, to stand in a class.
const IPRIVATE: &str = r"\u{e000}-\u{f8ff}\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}";

/// `pct-encoded` of RFC 3986, section 2.1.
const ENCODED: &str = "%[0-9A-Fa-f]{2}";

/// `unreserved` and `sub-delims` of RFC 3986, sections 2.2 and 2.3, to stand in a class that goes on; the
/// hyphen is at its end.
const PLAIN: &str = r"0-9A-Za-z._~!$&'()*+,;=\-";

/// The productions that both kinds of references are made of.
struct Parts {
    /// `//`, the authority, and a path that is empty or begins with a slash.
    with_authority: String,
    /// A path that begins with one slash.
    absolute: String,
    /// A path that begins with no slash, and is not empty.
    rootless: String,
    /// The same, without a colon in the first segment.
    noscheme: String,
    /// The query and the fragment, each if it is there.
    end: String,
}

/// RFC 3986, sections 3.2 to 3.5 and 4.2; RFC 3987, section 2.2.
fn parts(international: bool) -> Parts {
    let (more, private) = if international { (ucschar(), IPRIVATE) } else { (String::new(), "") };
    let one = |others: &str| format!("(?:[{PLAIN}{others}{more}]|{ENCODED})");
    let (name, user, plain, path, fragment) = (one(""), one(":"), one("@"), one(":@/"), one(":@/?"));
    let segment = one(":@");
    let query = one(&format!(":@/?{private}"));
    let future = format!(r"[Vv][0-9A-Fa-f]+\.[{PLAIN}:]+");
    let host = format!(r"(?:\[(?:{}|{future})\]|{name}*)", address::ipv6());
    Parts {
        with_authority: format!(r"//(?:{user}*@)?{host}(?::\d*)?(?:/{path}*)?"),
        absolute: format!("/(?:{segment}{path}*)?"),
        rootless: format!("{segment}{path}*"),
        noscheme: format!("{plain}+(?:/{path}*)?"),
        end: format!(r"(?:\?{query}*)?(?:#{fragment}*)?"),
    }
}

/// `scheme`, `:` and `hier-part` of RFC 3986, sections 3 and 3.1.
fn before_the_end(parts: &Parts) -> String {
    let Parts { with_authority, absolute, rootless, .. } = parts;
    format!("[A-Za-z][0-9A-Za-z+.-]*:(?:{with_authority}|{absolute}|{rootless}|)")
}

/// `URI` of RFC 3986, section 3, or `IRI` of RFC 3987, section 2.2. Whether an authority is a name in the
/// DNS, and which way its scripts run, is not looked at.
pub(super) fn uri(international: bool) -> String {
    let parts = parts(international);
    format!("{}{}", before_the_end(&parts), parts.end)
}

/// `URI-reference` of RFC 3986, section 4.1, or `IRI-reference` of RFC 3987, section 2.2.
pub(super) fn uri_reference(international: bool) -> String {
    let parts = parts(international);
    let absolute = before_the_end(&parts);
    let Parts { with_authority, absolute: path, noscheme, end, .. } = parts;
    format!("(?:{absolute}|{with_authority}|{path}|{noscheme}|){end}")
}

/// `URI-Template` of RFC 6570, section 2, with the apostrophe that erratum 6937 gives back to literals. The
/// operators that are reserved for later (section 2.2) are operators.
pub(super) fn uri_template() -> String {
    let literal = format!(r"(?:[!#$&'-;=?-[\]_a-z~{}{IPRIVATE}]|{ENCODED})", ucschar());
    let unit = format!("(?:[0-9A-Za-z_]|{ENCODED})");
    let variable = format!(r"{unit}(?:\.?{unit})*(?:\*|:[1-9]\d{{0,3}})?");
    format!(r"(?:{literal}|\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\}})*")
}
