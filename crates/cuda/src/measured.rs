//! What `--engine auto` goes by: how much faster than one core of the CPU a device was, as `cargo xtask gpu-check` recorded it in `measured.txt`.

/// A kind of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// One output: what a token holds, and the mask after it.
    Output,
    /// Many sequences at once.
    Batch,
    /// A step of a chart that is full.
    Dense,
}

impl Work {
    /// The name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Batch => "batch",
            Self::Dense => "dense",
        }
    }
}

const TABLE: &str = include_str!("../measured.txt");

/// How many times as fast as one core a device was, at least, by the clock of who waits for it. `None` if nobody has measured that.
pub fn advantage(work: Work) -> Option<f64> {
    read(TABLE, work)
}

fn read(table: &str, work: Work) -> Option<f64> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let mut values = lines.filter_map(|line| line.split_once(' ')).filter(|(name, _)| *name == work.name());
    values.find_map(|(_, value)| value.trim().parse().ok())
}

/// Whether a measurement says that a device is faster.
pub fn wins(work: Work) -> bool {
    advantage(work).is_some_and(|advantage| advantage > 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read() {
        let table = "# device: one\nbatch 3.50\noutput 0.20\n";
        assert_eq!(
            [Work::Output, Work::Batch, Work::Dense].map(|work| read(table, work)),
            [Some(0.2), Some(3.5), None]
        );
        assert_eq!(read("# batch 2\nbatch much\n", Work::Batch), None);
    }
}
