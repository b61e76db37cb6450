//! The table of collations: facts, in the order of their ids.

use crate::charset::Collation;

pub(crate) const TABLE: &[Collation] = &[];
