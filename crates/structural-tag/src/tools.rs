//! Tools and the choice among them as a tag.
