//! Texts of scripts, and texts that scripts see, as far as no VM is needed: a tokenizer, patterns, a
//! syntax and a lint.
//!
//! Bounded in time: the tokenizer reads each byte a constant number of times, a pattern has a budget.
#![forbid(unsafe_code)]

pub mod lint;
pub mod md5;
pub mod pattern;
pub mod required;
pub mod syntax;
pub mod tokenizer;
