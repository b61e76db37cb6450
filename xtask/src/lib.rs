//! The rules of the house that a machine can check, as functions of the tree's text.
#![forbid(unsafe_code)]

pub mod calls;
pub mod rules;
pub mod sbom;
pub mod tokens;
pub mod tree;
