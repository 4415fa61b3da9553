//! Names and numbers of hosts, and addresses of people.

/// `IPv4address` of RFC 3986, section 3.2.2, as RFC 2673, section 3.2: four octets without leading zeros.
pub(super) fn ipv4() -> String {
    let octet = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)";
    format!(r"{octet}(?:\.{octet}){{3}}")
}

/// `IPv6address` of RFC 3986, section 3.2.2, after RFC 4291, section 2.2: `::` stands for one group or more.
/// There is no zone.
pub(super) fn ipv6() -> String {
    ipv6_beside(7, &ipv4())
}

/// An IPv6 address with at most so many groups beside `::`, of which the last two may be written as octets.
fn ipv6_beside(most: usize, octets: &str) -> String {
    let group = "[0-9A-Fa-f]{1,4}";
    let last_two = format!("(?:{group}:{group}|{octets})");
    let mut forms = vec![format!("(?:{group}:){{6}}{last_two}")];
    // After the `::`, so many groups at most; before, as many as are left.
    for after in 0..=most {
        let before = match most - after {
            0 => String::new(),
            1 => format!("(?:{group})?"),
            before => format!("(?:(?:{group}:){{0,{}}}{group})?", before - 1),
        };
        let after = match after {
            0 => String::new(),
            1 => group.to_owned(),
            after => format!("(?:{group}:){{{}}}{last_two}", after - 2),
        };
        forms.push(format!("{before}::{after}"));
    }
    format!("(?:{})", forms.join("|"))
}

/// A label of RFC 1123, section 2.1 (RFC 952 with digits in front): letters, digits and hyphens inside; 63.
const LABEL: &str = "[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?";

/// RFC 1123, section 2.1, with the 253 characters that RFC 1035, section 2.3.4, leaves. That names of the
/// highest level are alphabetic, so that no name looks like an address, is how they are given out.
pub(super) fn hostname() -> String {
    format!(r"(?=.{{1,253}}$){LABEL}(?:\.{LABEL})*")
}

/// `Mailbox` of RFC 5321, section 4.1.2; with more characters that of RFC 6531, section 3.3, where what
/// labels mean to IDNA is not looked at: the suite has one outside Normalization Form C. Lengths are free
/// (section 4.5.3.1 says what servers must take), and of the address literals there are IPv4 and IPv6, whose
/// tag alone is registered.
pub(super) fn email(more: &str) -> String {
    let atom = format!("[0-9A-Za-z!#$%&'*+/=?^_`{{|}}~{more}-]+");
    // U+0020 to U+007E but `"` and `\`.
    let quoted = format!(r#""(?:[ !#-[\]-~{more}]|\\[ -~])*""#);
    let edge = format!("[0-9A-Za-z{more}]");
    let label = format!("{edge}(?:[0-9A-Za-z{more}-]*{edge})?");
    // Section 4.1.3: octets may have leading zeros, and `::` stands for two groups or more.
    let octet = r"(?:25[0-5]|2[0-4]\d|[01]?\d{1,2})";
    let octets = format!(r"{octet}(?:\.{octet}){{3}}");
    let literal = format!(r"\[(?:{octets}|[Ii][Pp][Vv]6:{})\]", ipv6_beside(6, &octets));
    format!(r"(?:{atom}(?:\.{atom})*|{quoted})@(?:{label}(?:\.{label})*|{literal})")
}
