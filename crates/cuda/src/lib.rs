//! The incremental Valiant recognizer and its masks on NVIDIA's devices.
//!
//! | module | what |
//! |---|---|
//! | [`charts`] | tiers of many sequences in a pool of pages: extend in batches, fork, roll back |
//! | [`recognizer`] | one such sequence as a [`Recognizer`](anygram_recognizer::Recognizer) |
//! | [`step`] | how sequences grow; what blocks need is planned there |
//! | [`turn`] | whole steps: states and masks without the host in between |
//! | [`image`](mod@image) | grammars as the kernels read them |
//! | [`tree`] | trees of terminal sequences as the kernels read them |
//! | [`search`] | masks: those trees searched on the device |
//! | [`interop`] | masks and logits in buffers of the caller |
//! | [`output`] | one output of a model: tokens in, masks out |
//! | [`dlpack`] | masks of the device as tensors of others |
//! | [`options`] | how much a pool holds, and what goes wrong |
//! | [`graphs`] | launches that come again, recorded |
//! | [`device`] | where kernels run, and how that fails |
//! | [`shim`] | the kernels on the CPU |
//! | [`measured`] | where a device was measured to be faster |
//!
//! The kernels are in `kernels/`, CUDA C++ that is compiled twice: for devices, by a pinned compiler
//! (`cargo xtask kernels`), and for the CPU, by the C++ compiler of the machine against a shim that has
//! fibers for threads. The tests run the second against the engines of the CPU; `docs/gpu.md` says what that
//! shows and what not. Without the feature `cuda` nothing here needs or looks for a driver.

pub mod charts;
pub mod device;
pub mod dlpack;
#[cfg(feature = "cuda")]
mod driver;
pub mod graphs;
pub mod image;
pub mod interop;
mod layout;
pub mod measured;
pub mod options;
pub mod output;
pub mod recognizer;
pub mod search;
pub mod shim;
pub mod step;
pub mod tree;
pub mod turn;

#[cfg(test)]
mod kernel_tests;

pub use charts::{Charts, GrammarId, SequenceId};
pub use device::DeviceError;
pub use graphs::GraphCounts;
pub use image::Image;
pub use options::{ChartError, PoolOptions};
pub use recognizer::{DeviceRecognizer, SharedCharts};
pub use shim::ShimOptions;
