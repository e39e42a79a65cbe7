//! Random programs in random layouts.
