//! What a program prints on a terminal, as an SVG picture.
//!
//! Of the escape sequences only SGR is understood (`ESC [ … m`: bold, dim and the foreground colours); the
//! others are left out. Every run of equal style is an element with its own position and length, so columns
//! are straight whatever monospaced font the reader has, also where a sign comes from another font.

use std::fmt::Write;

/// The width and the height of a character cell, and the space around the text, in pixels.
const CELL: (f64, f64) = (7.8, 17.0);
const MARGIN: f64 = 14.0;

/// How a run of characters looks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Style {
    bold: bool,
    dim: bool,
    /// One of the eight foreground colours of a terminal.
    color: Option<u8>,
}

/// A line: its characters, each with its style and each one column wide.
pub type Line = Vec<(char, Style)>;

/// The lines of an output with escape sequences.
pub fn lines(output: &str) -> Vec<Line> {
    let mut style = Style::default();
    output.lines().map(|line| read_line(line, &mut style)).collect()
}

fn read_line(line: &str, style: &mut Style) -> Line {
    let mut read = Vec::new();
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character != '\x1b' {
            read.push((character, *style));
            continue;
        }
        let mut sequence = String::new();
        let last = characters.by_ref().find(|&c| {
            sequence.push(c);
            c.is_ascii_alphabetic()
        });
        if let (Some('m'), Some(parameters)) = (last, sequence.strip_prefix('[')) {
            parameters.trim_end_matches('m').split(';').for_each(|parameter| style.apply(parameter));
        }
    }
    read
}

impl Style {
    fn apply(&mut self, parameter: &str) {
        match parameter.parse().unwrap_or(0) {
            0 => *self = Self::default(),
            1 => self.bold = true,
            2 => self.dim = true,
            22 => (self.bold, self.dim) = (false, false),
            color @ 30..=37 => self.color = Some(color - 30),
            39 => self.color = None,
            _ => {}
        }
    }

    /// The classes of the style sheet in [`svg`].
    fn classes(self) -> String {
        let mut classes = Vec::new();
        if self.bold {
            classes.push("b".to_owned());
        }
        if self.dim {
            classes.push("d".to_owned());
        }
        classes.extend(self.color.map(|color| format!("c{color}")));
        classes.join(" ")
    }
}

/// The characters of a line without their styles.
pub fn text(line: &[(char, Style)]) -> String {
    line.iter().map(|(character, _)| character).collect()
}

/// Breaks a line at blanks, so that no part is wider than `columns` where there is a blank to break at. What
/// goes on begins below the text of the second column (behind the first two blanks).
pub fn fold(line: Line, columns: usize) -> Vec<Line> {
    let (mut rest, mut folded) = (line, Vec::new());
    let indent = indent(&rest);
    while rest.len() > columns {
        let blank = rest[..=columns].iter().rposition(|&(character, _)| character == ' ');
        let Some(blank) = blank.filter(|&blank| blank > indent) else { break };
        let behind = rest.split_off(blank);
        folded.push(rest);
        rest = vec![(' ', Style::default()); indent];
        rest.extend(behind.into_iter().skip(1));
    }
    folded.push(rest);
    folded
}

fn indent(line: &[(char, Style)]) -> usize {
    let characters: Vec<char> = line.iter().map(|&(character, _)| character).collect();
    let Some(blanks) = characters.windows(2).position(|pair| pair == [' ', ' ']) else { return 0 };
    blanks + characters[blanks..].iter().take_while(|&&character| character == ' ').count()
}

/// The picture of some lines; `title` is read to those who cannot see it.
pub fn svg(lines: &[Line], title: &str) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = columns as f64 * CELL.0 + 2.0 * MARGIN;
    let height = lines.len() as f64 * CELL.1 + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>{}</title>\n{STYLE_SHEET}",
        escape(title)
    );
    for (number, line) in lines.iter().enumerate() {
        let y = MARGIN + (number as f64 + 0.75) * CELL.1;
        let mut column = 0;
        for run in line.chunk_by(|a, b| a.1 == b.1) {
            write_run(&mut svg, run, column, y);
            column += run.len();
        }
    }
    svg.push_str("</svg>\n");
    svg
}

const STYLE_SHEET: &str = "<style>
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace;
  fill: #e6edf3; white-space: pre }
.b { font-weight: 700 } .d { fill: #9198a1 }
.c1 { fill: #ff7b72 } .c2 { fill: #7ee787 } .c3 { fill: #e3b341 } .c4 { fill: #79c0ff }
.c5 { fill: #d2a8ff } .c6 { fill: #76e3ea }
</style>
<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>
";

/// Writes characters of one style that begin in a column; blanks around them need not be written.
fn write_run(svg: &mut String, run: &[(char, Style)], column: usize, y: f64) {
    let characters = text(run);
    let begins = characters.chars().take_while(|&c| c == ' ').count();
    let shown = characters.trim_matches(' ');
    if shown.is_empty() {
        return;
    }
    let x = MARGIN + (column + begins) as f64 * CELL.0;
    let length = shown.chars().count() as f64 * CELL.0;
    let classes = run[0].1.classes();
    let class = if classes.is_empty() { String::new() } else { format!(" class=\"{classes}\"") };
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\"{class} xml:space=\"preserve\">{}</text>",
        escape(shown)
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_end_where_the_sequence_says() {
        let read = lines("a\x1b[1m\x1b[32mb\x1b[0mc\x1b[2;31md\n\x1b[22;39me");
        let style = |bold, dim, color| Style { bold, dim, color };
        let first = [
            ('a', style(false, false, None)),
            ('b', style(true, false, Some(2))),
            ('c', style(false, false, None)),
            ('d', style(false, true, Some(1))),
        ];
        assert_eq!(read, [first.to_vec(), vec![('e', style(false, false, None))]]);
    }

    #[test]
    fn other_sequences_are_left_out() {
        let read = lines("\x1b[2K\x1b[?25la");
        assert_eq!(read, [vec![('a', Style::default())]]);
    }

    #[test]
    fn a_long_line_is_broken_at_blanks_and_hangs() {
        let folded = fold(lines("Prompt   one two three").remove(0), 16);
        let texts: Vec<String> = folded.iter().map(|line| text(line)).collect();
        assert_eq!(texts, ["Prompt   one two", "         three"]);
    }

    #[test]
    fn a_line_that_cannot_be_broken_stays() {
        let folded = fold(lines("abcdefgh").remove(0), 4);
        assert_eq!(folded.len(), 1);
    }

    #[test]
    fn signs_of_xml_are_escaped_and_runs_have_their_columns() {
        let picture = svg(&lines("ab \x1b[31m<&>\x1b[0m"), "a < b");
        assert!(picture.contains("<title>a &lt; b</title>"), "{picture}");
        let x = MARGIN + 3.0 * CELL.0;
        let length = 3.0 * CELL.0;
        let run = format!("x=\"{x:.1}\" y=\"26.8\" textLength=\"{length:.1}\" class=\"c1\"");
        assert!(picture.contains(&run), "{picture}");
        assert!(picture.contains(">&lt;&amp;&gt;</text>"), "{picture}");
    }
}
