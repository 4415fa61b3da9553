//! Paths in lines of a listing: `anygram_vocab::vocabulary::Vocabulary`.

/// The line with every path replaced.
pub fn map_paths(line: &str, mut replace: impl FnMut(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = line;
    while !rest.is_empty() {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
        let len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if len == 0 {
            let n_other = rest.find(is_part).unwrap_or(rest.len());
            out.push_str(&rest[..n_other]);
            rest = &rest[n_other..];
            continue;
        }
        // The colon before a type is no part of the path, nor are those behind a `>`.
        let path = rest[..len].trim_end_matches(':');
        out.push_str(&replace(path));
        out.push_str(&rest[path.len()..len]);
        rest = &rest[len..];
    }
    out
}

/// A path without its modules: the type and what belongs to it, or the last name. Of the standard library
/// `fmt` and `io` are kept, since their types have the names of others.
pub fn without_modules(path: &str) -> String {
    let parts: Vec<&str> = path.split("::").collect();
    let is_ours = parts[0].starts_with("anygram");
    let is_std = matches!(parts[0], "core" | "std" | "alloc");
    if parts.len() < 2 || !(is_ours || is_std) {
        return path.to_owned();
    }
    let first = parts.iter().position(|part| is_type(part)).unwrap_or(parts.len() - 1);
    let keep = is_std && first > 0 && matches!(parts[first - 1], "fmt" | "io");
    parts[first - usize::from(keep)..].join("::")
}

/// The crate and the name of the type of ours that a path names, if it does.
pub fn our_type(path: &str) -> Option<(&str, &str)> {
    let (name, _) = path.split_once("::").filter(|(name, _)| name.starts_with("anygram"))?;
    path.split("::").find(|part| is_type(part)).map(|part| (name, part))
}

/// Whether a part of a path is a type or a trait, or a variant, by its first letter and not a constant.
fn is_type(part: &str) -> bool {
    part.starts_with(|c: char| c.is_ascii_uppercase())
        && (part.len() == 1 || part.contains(char::is_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_get_short() {
        let short = |line| map_paths(line, without_modules);
        for (line, expected) in [
            (
                "pub fn anygram_vocab::v::Vocabulary::load(&std::path::Path) -> core::option::Option<Self>",
                "pub fn Vocabulary::load(&Path) -> Option<Self>",
            ),
            ("pub anygram_x::y::Limits::steps: u64", "pub Limits::steps: u64"),
            ("pub fn anygram_x::y::get_bit(&[u32], usize) -> bool", "pub fn get_bit(&[u32], usize) -> bool"),
            ("pub const anygram_x::y::MAX: usize", "pub const MAX: usize"),
            ("impl core::fmt::Debug for anygram_x::X<'_>", "impl fmt::Debug for X<'_>"),
        ] {
            assert_eq!(short(line), expected);
        }
        assert_eq!(our_type("anygram_x::y::Limits::steps"), Some(("anygram_x", "Limits")));
        assert_eq!(our_type("core::fmt::Debug"), None);
    }
}
