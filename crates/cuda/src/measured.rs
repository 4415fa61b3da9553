//! What `--engine auto` goes by: how much faster than one core of the CPU a device was, as
//! `cargo xtask gpu-report` recorded it in `measured.txt`.

use std::thread::available_parallelism;

/// A kind of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// One output: what a token holds, and the mask after it. The least advantage over real grammars.
    Output,
    /// So many sequences of an ambiguous grammar at once.
    Batch(usize),
    /// A step of a chart that is full.
    Dense,
}

/// What a device is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Nothing.
    Nothing,
    /// States and masks of charts that are dense
    /// ([`Output::for_dense_charts`](crate::output::Output::for_dense_charts)).
    Dense,
    /// All masks.
    Masks,
}

const TABLE: &str = include_str!("../measured.txt");

/// How many times as fast as one core a device was, at least, by the clock of who waits for it: of batches,
/// the largest that was measured and is not larger. `None` if nobody has measured that.
pub fn advantage(work: Work) -> Option<f64> {
    read(TABLE, work)
}

fn read(table: &str, work: Work) -> Option<f64> {
    let mut found = None;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let kind = words.next();
        let value: Option<f64> = words.next_back().and_then(|value| value.parse().ok());
        let size: Option<usize> = words.next().and_then(|size| size.parse().ok());
        let (Some(value), true) = (value, words.next().is_none()) else { continue };
        match (work, kind, size) {
            (Work::Output, Some("output"), None) | (Work::Dense, Some("dense"), None) => return Some(value),
            (Work::Batch(n), Some("batch"), Some(size)) if size <= n => {
                found = found.filter(|&(known, _)| known > size).or(Some((size, value)));
            }
            _ => {}
        }
    }
    found.map(|(_, value)| value)
}

/// What `auto` uses a device for, by the measurements: `n_outputs` at once, of a grammar for which the CPU's
/// best engine is the Valiant chart (`is_ambiguous`) or a nearly deterministic one.
///
/// The CPU computes a batch on all cores, so there a device has to be faster than all of them.
pub fn choose(n_outputs: usize, is_ambiguous: bool) -> Use {
    choose_by(TABLE, n_outputs, is_ambiguous, available_parallelism().map_or(1, usize::from))
}

fn choose_by(table: &str, n_outputs: usize, is_ambiguous: bool, n_cores: usize) -> Use {
    let wins = |work, cores: usize| read(table, work).is_some_and(|advantage| advantage > cores as f64);
    let cores = n_cores.min(n_outputs).max(1);
    let of_all = match n_outputs {
        2.. if is_ambiguous => Work::Batch(n_outputs),
        _ => Work::Output,
    };
    match () {
        () if wins(of_all, cores) => Use::Masks,
        () if is_ambiguous && wins(Work::Dense, cores) => Use::Dense,
        () => Use::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read() {
        let table = "# device: one\nbatch 4 2.50\nbatch 64 9.00\nbatch 16 3.50\noutput 0.20\n";
        let works =
            [Work::Output, Work::Batch(64), Work::Batch(63), Work::Batch(5), Work::Batch(3), Work::Dense];
        let found = [Some(0.2), Some(9.0), Some(3.5), Some(2.5), None, None];
        assert_eq!(works.map(|work| read(table, work)), found);
        assert_eq!(read("# batch 4 2\nbatch 4 much\nbatch four 3\nbatch 4 5 6\n", Work::Batch(4)), None);
    }

    #[test]
    fn a_device_is_chosen_where_it_is_faster_than_the_cores_that_would_work() {
        let table = "output 0.2\nbatch 16 6\nbatch 256 40\ndense 3\n";
        let chosen = |n, is_ambiguous, n_cores| choose_by(table, n, is_ambiguous, n_cores);
        assert_eq!(chosen(1, false, 8), Use::Nothing);
        assert_eq!(chosen(1, true, 8), Use::Dense);
        assert_eq!(chosen(16, true, 4), Use::Masks);
        assert_eq!(chosen(16, true, 8), Use::Nothing);
        assert_eq!(chosen(256, true, 32), Use::Masks);
        assert_eq!(chosen(256, false, 1), Use::Nothing);
        assert_eq!(choose_by("output 5", 1, false, 8), Use::Masks);
        assert_eq!(choose_by("output 5", 256, false, 8), Use::Nothing);
        assert_eq!(choose_by("", 256, true, 1), Use::Nothing);
    }
}
