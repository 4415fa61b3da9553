//! Host names of other scripts.

/// RFC 5890 to 5893.
pub(super) fn hostname() -> String {
    String::new()
}
