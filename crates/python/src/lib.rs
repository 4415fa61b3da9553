//! The bridge to Python: the module `anygram._native`.
//!
//! It is thin: a method converts its arguments and calls the library. What can be said in Python is said
//! there (`python/anygram`): exceptions, the tokenizers and schemas of other packages, adapters.
//!
//! | module | what |
//! |---|---|
//! | [`gate`] | work without the interpreter's lock, threads, `fork()` |
//! | [`error`] | exceptions |
//! | [`array`], [`mask_buffer`] | memory of others |
//! | [`number`], [`tokens`] | numbers, token ids and texts as arguments |
//! | [`tools`] | tools as structural tags |
//! | [`vocabulary`], [`compiler`], [`constraint`], [`matcher`], [`batch`], [`mask_times`], [`tables_bound`] | left to right |
//! | [`captures`] | which part of a text is which rule |
//! | [`canvas`], [`solver`] | any order |
//! | [`log_probs`], [`weigher`], [`decoder`], [`session`], [`logits`] | weights, methods, the decoding loop |
//! | [`replay`] | the page that shows its runs |
//!
//! The modules name Python's classes as the library names its own, so those are `anygram::X`. `unsafe` is in
//! those that read or write memory of callers ([`array`], [`mask_buffer`] and who uses them), and each says
//! so.

use pyo3::prelude::*;

mod array;
mod batch;
mod canvas;
mod captures;
mod compiler;
mod constraint;
mod decoder;
mod error;
mod gate;
mod log_probs;
mod logits;
mod mask_buffer;
mod mask_times;
mod matcher;
mod number;
mod replay;
mod session;
mod solver;
mod tables_bound;
mod tokens;
mod tools;
mod vocabulary;
mod weigher;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::batch::fill_masks;
    #[pymodule_export]
    use crate::canvas::{Canvas, Gap};
    #[pymodule_export]
    use crate::captures::{CaptureEvent, Captures, TreeNode};
    #[pymodule_export]
    use crate::compiler::{Cancel, Compiler, Language, Reading};
    #[pymodule_export]
    use crate::constraint::Constraint;
    #[pymodule_export]
    use crate::decoder::{Decoded, Decoder, View};
    #[pymodule_export]
    use crate::log_probs::LogProbs;
    #[pymodule_export]
    use crate::logits::apply_mask;
    #[pymodule_export]
    use crate::mask_buffer::MaskBuffer;
    #[pymodule_export]
    use crate::mask_times::MaskTimes;
    #[pymodule_export]
    use crate::matcher::{Forced, Matcher};
    #[pymodule_export]
    use crate::replay::Replay;
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::solver::{Admissible, Answer, Minimum, Solver, Undecided, batch_canvases};
    #[pymodule_export]
    use crate::tables_bound::TablesBound;
    #[pymodule_export]
    use crate::tools::tool_tag;
    #[pymodule_export]
    use crate::vocabulary::Vocabulary;
    #[pymodule_export]
    use crate::weigher::{Best, Intersected, Methods, Samples, Weigher};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        module.add("GAP", Py::new(py, Gap)?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::gate::watch(py, module)
    }
}
