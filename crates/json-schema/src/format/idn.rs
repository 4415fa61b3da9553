//! Host names of other scripts: RFC 5890 to 5893.

mod tables;

use super::address;
use crate::pattern::{Pattern, classes};

use tables::{ARABIC_NUMBER, JOINS_LEFT, JOINS_RIGHT, OTHER_NEUTRAL, RIGHT_TO_LEFT, UNSTABLE, VIRAMA};

/// What separates labels (RFC 3490, section 3.1), and what does not.
const DOT: &str = r"[.\u3002\uff0e\uff61]";
const NO_DOT: &str = r"[^.\u3002\uff0e\uff61]";

/// Labels by [`ascii_label`] and [`u_label`], which keep the Bidi rule together. 253 characters at most,
/// without those of U-labels, which are counted as Punycode.
pub(super) fn hostname() -> String {
    let other = format!(r"{NO_DOT}*(?!{DOT})[^\0-\x7f]{NO_DOT}*");
    let length = format!("(?=(?:{other})?(?:[0-9A-Za-z-]|{DOT}(?:{other})?){{0,253}}$)");
    let labels = format!("(?:(?:{}|{})(?:{DOT}(?!$)|$))+", ascii_label(), u_label());
    format!("{length}{}{labels}", bidi())
}

/// A label of letters, digits and hyphens (RFC 5890, section 2.3.1) without `--` as third and fourth
/// character, but for `xn--`: what follows is not decoded.
fn ascii_label() -> String {
    format!("(?:(?![0-9A-Za-z-]{{2}}--)|(?=[Xx][Nn]--)){}", address::LABEL)
}

/// A U-label (RFC 5890, section 2.3.2.1; RFC 5891, section 4.2.3), whatever its length and normalization.
fn u_label() -> String {
    let other = format!(r"(?={NO_DOT}*(?!{DOT})[^\0-\x7f])");
    let mark = set(r"\p{M}");
    let hyphens = format!("(?!-|{mark}|{NO_DOT}{{2}}--|{NO_DOT}*-(?:{DOT}|$))");
    // RFC 5892, appendix A.7 to A.9: what the label has elsewhere.
    let kana = format!(r"(?:(?!{NO_DOT}*\u30fb)|(?={NO_DOT}*{}))", set(r"\p{Hira}\p{Kana}\p{Han}"));
    let (arabic, extended) = (r"[\u0660-\u0669]", r"[\u06f0-\u06f9]");
    let one_kind = |a, b| format!("(?!{NO_DOT}*{a}{NO_DOT}*{b})");
    let digits = one_kind(arabic, extended) + &one_kind(extended, arabic);
    format!("{other}{hyphens}{kana}{digits}{}+", characters())
}

/// One or more characters that stand where they may: RFC 5892, with the rules of its appendix A that look at
/// neighbours. What has to stand before a character is taken with it.
fn characters() -> String {
    let pvalid = pvalid();
    let of = |class: &str| set(&format!("[{class}]&&[{pvalid}]"));
    let (virama, hebrew, transparent) = (of(VIRAMA), of(r"\p{Hebrew}"), of(TRANSPARENT));
    let (left, right) = (of(JOINS_LEFT), of(JOINS_RIGHT));
    let pvalid = set(&pvalid);
    let alternatives = [
        pvalid,
        // A.1 and A.2, the first and the second half of A.1.
        format!(r"{virama}[\u200c\u200d]"),
        format!(r"{left}{transparent}*\u200c(?={transparent}*{right})"),
        // A.3, A.4, A.5 and A.6.
        r"l\u00b7(?=l)".to_owned(),
        format!(r"\u0375(?={})", set(r"\p{Greek}")),
        format!(r"{hebrew}[\u05f3\u05f4]+"),
        // A.7 to A.9 are about the whole label.
        r"[\u30fb\u0660-\u0669\u06f0-\u06f9]".to_owned(),
    ];
    format!("(?:{})", alternatives.join("|"))
}

/// PVALID (RFC 5892, section 3) to stand in a class of `regex-syntax`.
fn pvalid() -> String {
    let letters = r"\p{Ll}\p{Lu}\p{Lo}\p{Nd}\p{Lm}\p{Mn}\p{Mc}";
    let ignorable = r"\p{CWCF}\p{DI}";
    // Sections 2.7 (blocks), 2.9 (old Hangul Jamo), 2.6 (exceptions) and the digits of appendix A.8 and A.9.
    let blocks = r"\u{20d0}-\u{20ff}\u{1d100}-\u{1d24f}\u{1100}-\u{11ff}\u{a960}-\u{a97c}\u{d7b0}-\u{d7fb}";
    let exceptions = r"\u{640}\u{7fa}\u{302e}\u{302f}\u{3031}-\u{3035}\u{303b}";
    let digits = r"\u{660}-\u{669}\u{6f0}-\u{6f9}";
    let too = r"\u{2d}\u{df}\u{3c2}\u{6fd}\u{6fe}\u{f0b}\u{3007}";
    format!("[{letters}--[{UNSTABLE}{ignorable}{blocks}{exceptions}{digits}]]{too}")
}

/// Joining_Type T.
const TRANSPARENT: &str = r"\p{Mn}\u{1e94b}";

/// Bidi_Class EN.
const EUROPEAN_NUMBER: &str = r"\u{30}-\u{39}\u{6f0}-\u{6f9}";

/// Bidi_Class NSM: the nonspacing marks but for some that are L.
const NONSPACING: &str = r"[\p{Mn}--\u{cbf}\u{cc6}\u{11a07}\u{11a08}\u{11c3f}]";

/// The Bidi rule (RFC 5893, section 2) for all labels, if a character is R, AL or AN. What is in no other
/// class here is L, but for the dots, which are in none.
fn bidi() -> String {
    let neutral = format!(r"\u{{2d}}\u{{200c}}\u{{200d}}{OTHER_NEUTRAL}{NONSPACING}");
    let not_left = format!(r"\u{{2e}}\u{{3002}}\u{{ff0e}}\u{{ff61}}{RIGHT_TO_LEFT}{ARABIC_NUMBER}");
    let mark = set(NONSPACING);
    // A label that begins with R or AL, with numbers of one kind.
    let right_to_left = |number: &str| {
        let any = set(&format!("{RIGHT_TO_LEFT}{number}{neutral}"));
        let last = set(&format!("{RIGHT_TO_LEFT}{number}"));
        format!("(?={}){any}*{last}{mark}*", set(RIGHT_TO_LEFT))
    };
    // One that begins with L.
    let first = set(&format!("^{not_left}{neutral}{EUROPEAN_NUMBER}"));
    let (any, last) = (set(&format!("^{not_left}")), set(&format!("^{not_left}{neutral}")));
    let left_to_right = format!("(?={first}){any}*{last}{mark}*");
    let label = [right_to_left(EUROPEAN_NUMBER), right_to_left(ARABIC_NUMBER), left_to_right].join("|");
    let no_right = set(&format!("^{RIGHT_TO_LEFT}{ARABIC_NUMBER}"));
    format!("(?={no_right}*$|(?:(?:{label})(?:{DOT}(?!$)|$))+$)")
}

/// A class of `regex-syntax`, which has differences, as one of ECMA-262.
fn set(class: &str) -> String {
    let class = classes::of_regex(&format!("[{class}]"));
    class.map_or_else(|| "[]".to_owned(), |class| Pattern::Class(class).to_string())
}
