//! Launches that come again and again: recorded once, then replayed as a whole.

use crate::device::Grid;
use crate::layout::Kernel;

/// A kernel that is to run, with these bytes as its parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Launch {
    pub(crate) kernel: Kernel,
    pub(crate) grid: Grid,
    pub(crate) params: Vec<u64>,
}

/// How launches were made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GraphCounts {
    /// Lists of launches that were recorded as a graph.
    pub recorded: usize,
    /// Times that one of them was replayed after that.
    pub replayed: usize,
}

/// The lists of launches that are kept, least recently used first to go.
const MAX_GRAPHS: usize = 16;

struct Known<G> {
    launches: Vec<Launch>,
    /// The graph; `Some(None)` if there cannot be one.
    graph: Option<Option<G>>,
    used: u64,
}

/// Lists of launches that were run before. What changes from one time to the next is in memory of the device,
/// so equal lists are the same work on other data.
pub(crate) struct Graphs<G> {
    known: Vec<Known<G>>,
    clock: u64,
    pub(crate) counts: GraphCounts,
}

impl<G> Default for Graphs<G> {
    fn default() -> Self {
        Self { known: Vec::new(), clock: 0, counts: GraphCounts::default() }
    }
}

/// What is to be done with a list of launches.
pub(crate) enum Found<G> {
    /// Run it: it comes for the first time, or cannot be recorded. A graph that had to make room for it, to
    /// be destroyed.
    Run(Option<G>),
    /// It comes again: record it, give the graph to [`Graphs::set`], and replay it.
    Record(usize),
    /// It was recorded.
    Replay(G),
}

impl<G: Clone> Graphs<G> {
    pub(crate) fn find(&mut self, launches: &[Launch]) -> Found<G> {
        self.clock += 1;
        let used = self.clock;
        let Some(at) = self.known.iter().position(|known| known.launches == launches) else {
            let mut dropped = None;
            if self.known.len() == MAX_GRAPHS {
                let oldest = (0..MAX_GRAPHS).min_by_key(|&at| self.known[at].used).unwrap_or(0);
                dropped = self.known.swap_remove(oldest).graph.flatten();
            }
            self.known.push(Known { launches: launches.to_vec(), graph: None, used });
            return Found::Run(dropped);
        };
        self.known[at].used = used;
        match &self.known[at].graph {
            None => Found::Record(at),
            Some(None) => Found::Run(None),
            Some(Some(graph)) => {
                self.counts.replayed += 1;
                Found::Replay(graph.clone())
            }
        }
    }

    /// Keeps what was recorded, or that nothing could be.
    pub(crate) fn set(&mut self, at: usize, graph: Option<G>) {
        self.counts.recorded += usize::from(graph.is_some());
        self.known[at].graph = Some(graph);
    }

    /// All graphs, to be destroyed.
    #[cfg(feature = "cuda")]
    pub(crate) fn take(&mut self) -> Vec<G> {
        self.known.drain(..).filter_map(|known| known.graph.flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launches(n: u32) -> Vec<Launch> {
        let grid = Grid { blocks: (n, 1), threads: 32, shared_words: 0, is_cooperative: false };
        vec![Launch { kernel: Kernel::Step, grid, params: vec![u64::from(n)] }]
    }

    #[test]
    fn the_second_time_is_recorded_and_the_oldest_goes() {
        let mut graphs = Graphs::default();
        assert!(matches!(graphs.find(&launches(0)), Found::Run(None)));
        let Found::Record(at) = graphs.find(&launches(0)) else { panic!("the second time") };
        graphs.set(at, Some("graph"));
        assert!(matches!(graphs.find(&launches(0)), Found::Replay("graph")));
        // One that cannot be recorded is run, time after time.
        graphs.find(&launches(1));
        let Found::Record(at) = graphs.find(&launches(1)) else { panic!("the second time") };
        graphs.set(at, None);
        assert!(matches!(graphs.find(&launches(1)), Found::Run(None)));
        for n in 2..MAX_GRAPHS as u32 {
            assert!(matches!(graphs.find(&launches(n)), Found::Run(None)), "there is room");
        }
        assert!(matches!(graphs.find(&launches(100)), Found::Run(Some("graph"))), "the oldest is given back");
        assert!(matches!(graphs.find(&launches(0)), Found::Run(None)), "and begins again");
        assert_eq!(graphs.counts, GraphCounts { recorded: 1, replayed: 1 });
    }
}
