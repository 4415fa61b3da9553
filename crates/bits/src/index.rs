/// Declares a `u32` index type, so that a terminal is never taken for a nonterminal.
///
/// The type is `Copy`, ordered and hashable, converts from `usize` with [`new`](#method.new) (which panics
/// beyond `u32::MAX`, a bug of the caller: inputs are limited long before) and back with `index()`.
#[macro_export]
macro_rules! index_type {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// The index with this number.
            #[inline]
            pub const fn new(index: usize) -> Self {
                assert!(index <= u32::MAX as usize);
                Self(index as u32)
            }

            /// The number, for indexing into a slice.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
