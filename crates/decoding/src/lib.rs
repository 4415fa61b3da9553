//! The decoding loop over canvases, and the published methods beside the exact one.
//!
//! | module | what |
//! |---|---|
//! | [`decode`] | the loop in which a model fills a canvas, and what each method does in it |
//! | [`methods`] | the methods as answers to one question: is the canvas completable? |
//! | [`intersection`] | IG-CD and EPIC: gaps for holes, and a search over the implicit intersection grammar |
//! | [`lookahead`] | LAVE's verification |
//!
//! Of canvases and their exact answers this crate sees what users of [`anygram_any_order`] see, and a few
//! functions that are hidden in its documentation.

pub mod decode;
pub mod intersection;
pub mod lookahead;
pub mod methods;

pub use decode::{
    DecodeError, DecodeOptions, Decoded, Decoder, Model, ModelError, OpenSlots, STRATEGIES, Strategy, Trace,
    View,
};
pub use intersection::{
    Complete, Intersected, Intersection, IntersectionBy, IntersectionOptions, IntersectionStats,
};
pub use lookahead::Lookahead;
pub use methods::{Method, Methods, Verdict};
