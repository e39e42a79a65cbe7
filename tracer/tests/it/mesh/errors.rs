//! Layouts that cannot be.
