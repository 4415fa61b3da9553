//! Prose that programs write, in lines as wide as those that people write.

/// The columns of a line, as for all pages (CONTRIBUTING.md).
const WIDTH: usize = 110;

/// Breaks the lines of a page of Markdown that are too long, at spaces; what belongs to an item of a list
/// stays below it. Rows of tables stay as they are, and so does what has no place to break.
pub fn wrapped(page: &str) -> String {
    let mut out = String::with_capacity(page.len());
    for line in page.lines() {
        if line.chars().count() <= WIDTH || line.starts_with(['|', '#', '!']) {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let indent = if line.starts_with("- ") { 2 } else { 0 };
        let mut columns = 0;
        for word in line.split(' ') {
            let n = word.chars().count();
            // At the beginning of a line `-` or `#` would say something else.
            let may_break = columns > indent && word.starts_with(|c: char| !"-+*#>|".contains(c) || n > 2);
            if may_break && columns + 1 + n > WIDTH {
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent));
                columns = indent;
            } else if columns > 0 {
                out.push(' ');
                columns += 1;
            }
            out.push_str(word);
            columns += n;
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn long_lines_are_broken_at_spaces() {
        let (long, words) = ("x".repeat(120), "word ".repeat(40));
        let kept = format!("# {words}\n| {words} |\n![{words}](a.svg)\n{long}\n\n- short\n");
        assert_eq!(wrapped(&kept), kept);
        for (line, indent) in [(words.trim_end(), ""), (&format!("- {}", words.trim_end()), "  ")] {
            let broken = wrapped(&format!("{line}\n"));
            assert!(broken.lines().count() == 2 && broken.lines().all(|line| line.chars().count() <= 110));
            assert!(broken.lines().nth(1).unwrap().starts_with(&format!("{indent}word")));
            assert_eq!(broken.split_whitespace().collect::<Vec<_>>(), line.split(' ').collect::<Vec<_>>());
        }
        let minus = format!("{}- c", "ab ".repeat(36));
        assert_eq!(wrapped(&minus).lines().nth(1), Some("c"), "no line becomes an item");
    }
}
