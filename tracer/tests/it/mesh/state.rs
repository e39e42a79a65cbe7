//! State and effects on meshes.
