//! Host names: RFC 1123 for ASCII, RFC 5890 to 5893 for other scripts, RFC 3492 (Punycode) between the two.

use std::sync::LazyLock;

use unicode_bidi::BidiClass::{self, AL, AN, BN, CS, EN, ES, ET, L, NSM, ON, R};
use unicode_joining_type::{JoiningType, get_joining_type};
use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::is_nfc;

const MAX_LABEL: usize = 63;
const MAX_NAME: usize = 253;
const PREFIX: &str = "xn--";

/// RFC 1123, section 2.1. What labels that begin with `xn--` decode to is not looked at.
pub(crate) fn hostname(text: &str) -> bool {
    text.len() <= MAX_NAME && text.split('.').all(is_ascii_label)
}

/// Whether the labels are allowed, alone and together.
pub(crate) fn idn_hostname(text: &str) -> bool {
    let (mut length, mut decoded) = (0, Vec::new());
    for label in text.split(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']) {
        let Some((characters, octets)) = decoded_label(label) else { return false };
        length += usize::from(!decoded.is_empty()) + octets;
        decoded.push(characters);
    }
    length <= MAX_NAME && keep_bidi_rule(&decoded)
}

/// The Bidi rule is of all labels, if it is of one.
fn keep_bidi_rule(labels: &[Vec<char>]) -> bool {
    let is_rtl = |c: &char| matches!(unicode_bidi::bidi_class(*c), R | AL | AN);
    !labels.iter().flatten().any(is_rtl) || labels.iter().all(|label| keeps_bidi_rule(label))
}

/// The characters that a label stands for, and its length in ASCII.
fn decoded_label(label: &str) -> Option<(Vec<char>, usize)> {
    let characters: Vec<char> = label.chars().collect();
    if !label.is_ascii() {
        let octets = PREFIX.len() + encode(&characters)?.len();
        return is_u_label(&characters).then_some((characters, octets));
    }
    if !is_ascii_label(label) {
        return None;
    }
    if !has_prefix(label) {
        let is_reserved = label.as_bytes().get(2..4) == Some(b"--");
        return (!is_reserved).then_some((characters, label.len()));
    }
    let lower = label.to_ascii_lowercase();
    let punycode = &lower[PREFIX.len()..];
    let decoded = decode(punycode)?;
    let canonical = encode(&decoded).as_deref() == Some(punycode);
    (canonical && !decoded.iter().all(char::is_ascii) && is_u_label(&decoded))
        .then_some((decoded, label.len()))
}

fn has_prefix(label: &str) -> bool {
    label.get(..4).is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX))
}

fn is_ascii_label(label: &str) -> bool {
    (1..=MAX_LABEL).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A class of characters by properties of Unicode, as ECMA-262 names them.
type Class = LazyLock<regress::Regex>;

fn class(pattern: &str) -> regress::Regex {
    regress::Regex::with_flags(&format!("^{pattern}$"), "u").expect("a pattern of ours")
}

fn is_in(class: &Class, c: char) -> bool {
    class.find(c.encode_utf8(&mut [0; 4])).is_some()
}

static LETTERS_DIGITS: Class = Class::new(|| class(r"[\p{Ll}\p{Lu}\p{Lo}\p{Nd}\p{Lm}\p{Mn}\p{Mc}]"));
static MARK: Class = Class::new(|| class(r"\p{M}"));
static UNSTABLE: Class = Class::new(|| {
    class(r"[\p{Changes_When_NFKC_Casefolded}\p{White_Space}\p{Noncharacter_Code_Point}\p{DI}]")
});
static GREEK: Class = Class::new(|| class(r"\p{Script=Greek}"));
static HEBREW: Class = Class::new(|| class(r"\p{Script=Hebrew}"));
static KANA_HAN: Class = Class::new(|| class(r"[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]"));

/// RFC 5890, section 2.3.2.1, but for the Bidi rule.
fn is_u_label(label: &[char]) -> bool {
    encode(label).is_some_and(|punycode| PREFIX.len() + punycode.len() <= MAX_LABEL)
        && label.first() != Some(&'-')
        && label.last() != Some(&'-')
        && label.get(2..4) != Some(&['-', '-'])
        && label.first().is_some_and(|first| !is_in(&MARK, *first))
        && is_nfc(&label.iter().collect::<String>())
        && (0..label.len()).all(|at| is_allowed(label, at))
}

/// RFC 5892, sections 2 and 3.
fn is_pvalid(c: char) -> bool {
    match c {
        '-' | '0'..='9' | 'a'..='z' => true,
        '\u{df}' | '\u{3c2}' | '\u{6fd}' | '\u{6fe}' | '\u{f0b}' | '\u{3007}' => true,
        '\u{640}' | '\u{7fa}' | '\u{302e}' | '\u{302f}' | '\u{3031}'..='\u{3035}' | '\u{303b}' => false,
        '\u{20d0}'..='\u{20ff}' | '\u{1d100}'..='\u{1d1ff}' | '\u{1d200}'..='\u{1d24f}' => false,
        '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97c}' | '\u{d7b0}'..='\u{d7fb}' => false,
        _ => is_in(&LETTERS_DIGITS, c) && !is_in(&UNSTABLE, c),
    }
}

/// Whether a character may stand where it stands: RFC 5892, appendix A.
fn is_allowed(label: &[char], at: usize) -> bool {
    let before = at.checked_sub(1).map(|at| label[at]);
    let after = label.get(at + 1).copied();
    let is_virama = |c: char| canonical_combining_class(c) == 9;
    match label[at] {
        '\u{200d}' => before.is_some_and(is_virama),
        '\u{200c}' => before.is_some_and(is_virama) || joins(label, at),
        '\u{b7}' => before == Some('l') && after == Some('l'),
        '\u{375}' => after.is_some_and(|c| is_in(&GREEK, c)),
        '\u{5f3}' | '\u{5f4}' => before.is_some_and(|c| is_in(&HEBREW, c)),
        '\u{30fb}' => label.iter().any(|c| is_in(&KANA_HAN, *c)),
        '\u{660}'..='\u{669}' => !label.iter().any(|c| matches!(c, '\u{6f0}'..='\u{6f9}')),
        '\u{6f0}'..='\u{6f9}' => !label.iter().any(|c| matches!(c, '\u{660}'..='\u{669}')),
        c => is_pvalid(c),
    }
}

/// Whether characters on both sides would join.
fn joins(label: &[char], at: usize) -> bool {
    let skip = |c: &&char| get_joining_type(**c) == JoiningType::Transparent;
    let before = label[..at].iter().rev().find(|c| !skip(c)).map(|c| get_joining_type(*c));
    let after = label[at + 1..].iter().find(|c| !skip(c)).map(|c| get_joining_type(*c));
    matches!(before, Some(JoiningType::LeftJoining | JoiningType::DualJoining))
        && matches!(after, Some(JoiningType::RightJoining | JoiningType::DualJoining))
}

/// RFC 5893, section 2.
fn keeps_bidi_rule(label: &[char]) -> bool {
    let classes: Vec<BidiClass> = label.iter().map(|c| unicode_bidi::bidi_class(*c)).collect();
    let last = classes.iter().rev().find(|class| **class != NSM);
    match classes.first() {
        Some(R | AL) => {
            classes.iter().all(|class| matches!(*class, R | AL | AN | EN | ES | CS | ET | ON | BN | NSM))
                && matches!(last, Some(&(R | AL | EN | AN)))
                && !(classes.contains(&EN) && classes.contains(&AN))
        }
        Some(L) => {
            classes.iter().all(|class| matches!(*class, L | EN | ES | CS | ET | ON | BN | NSM))
                && matches!(last, Some(&(L | EN)))
        }
        _ => false,
    }
}

// Punycode: RFC 3492, sections 5 and 6.

const BASE: u32 = 36;
const T_MIN: u32 = 1;
const T_MAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const INITIAL_BIAS: u32 = 72;
const INITIAL_N: u32 = 0x80;

fn adapt(delta: u32, n_points: u32, first: bool) -> u32 {
    let mut delta = if first { delta / DAMP } else { delta / 2 };
    delta += delta / n_points;
    let mut k = 0;
    while delta > ((BASE - T_MIN) * T_MAX) / 2 {
        delta /= BASE - T_MIN;
        k += BASE;
    }
    k + (BASE - T_MIN + 1) * delta / (delta + SKEW)
}

fn threshold(k: u32, bias: u32) -> u32 {
    k.saturating_sub(bias).clamp(T_MIN, T_MAX)
}

fn digit(value: u32) -> char {
    char::from(if value < 26 { b'a' + value as u8 } else { b'0' + (value - 26) as u8 })
}

fn digit_value(c: char) -> Option<u32> {
    match c {
        'a'..='z' => Some(u32::from(c) - u32::from('a')),
        '0'..='9' => Some(u32::from(c) - u32::from('0') + 26),
        _ => None,
    }
}

/// The code points that lower-case Punycode stands for.
fn decode(text: &str) -> Option<Vec<char>> {
    let (basic, extended) = text.rsplit_once('-').unwrap_or(("", text));
    let mut output: Vec<char> = basic.chars().collect();
    let (mut n, mut i, mut bias) = (INITIAL_N, 0u32, INITIAL_BIAS);
    let mut digits = extended.chars().peekable();
    while digits.peek().is_some() {
        let (old, mut weight, mut k) = (i, 1u32, BASE);
        loop {
            let value = digit_value(digits.next()?)?;
            i = i.checked_add(value.checked_mul(weight)?)?;
            let threshold = threshold(k, bias);
            if value < threshold {
                break;
            }
            weight = weight.checked_mul(BASE - threshold)?;
            k += BASE;
        }
        let n_points = u32::try_from(output.len() + 1).ok()?;
        bias = adapt(i - old, n_points, old == 0);
        n = n.checked_add(i / n_points)?;
        i %= n_points;
        output.insert(i as usize, char::from_u32(n)?);
        i += 1;
    }
    Some(output)
}

/// The Punycode of a label; `None` if its numbers overflow.
fn encode(label: &[char]) -> Option<String> {
    let mut output: String = label.iter().filter(|c| c.is_ascii()).collect();
    let n_basic = u32::try_from(output.len()).ok()?;
    if n_basic > 0 {
        output.push('-');
    }
    let (mut n, mut delta, mut bias, mut n_done) = (INITIAL_N, 0u32, INITIAL_BIAS, n_basic);
    while (n_done as usize) < label.len() {
        let next = label.iter().map(|c| u32::from(*c)).filter(|c| *c >= n).min()?;
        delta = delta.checked_add((next - n).checked_mul(n_done + 1)?)?;
        n = next;
        for c in label.iter().map(|c| u32::from(*c)) {
            if c < n {
                delta = delta.checked_add(1)?;
            } else if c == n {
                push_integer(&mut output, delta, bias);
                bias = adapt(delta, n_done + 1, n_done == n_basic);
                delta = 0;
                n_done += 1;
            }
        }
        delta = delta.checked_add(1)?;
        n += 1;
    }
    Some(output)
}

fn push_integer(output: &mut String, delta: u32, bias: u32) {
    let (mut rest, mut k) = (delta, BASE);
    loop {
        let threshold = threshold(k, bias);
        if rest < threshold {
            output.push(digit(rest));
            return;
        }
        output.push(digit(threshold + (rest - threshold) % (BASE - threshold)));
        rest = (rest - threshold) / (BASE - threshold);
        k += BASE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punycode_goes_both_ways() {
        for (text, punycode) in [
            ("실례", "9n2bp8q"),
            ("bücher", "bcher-kva"),
            ("ü", "tda"),
            ("他们为什么不说中文", "ihqwcrb4cv8a8dqg056pqjye"),
        ] {
            let characters: Vec<char> = text.chars().collect();
            assert_eq!(decode(punycode).as_ref(), Some(&characters), "{text}");
            assert_eq!(encode(&characters).as_deref(), Some(punycode), "{text}");
        }
    }
}
