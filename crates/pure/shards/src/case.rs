//! A statement under way: its tree, the tables of the map in it, and what is known besides.

use crate::facts::Facts;
use crate::hints::Hints;
use crate::lookups::Wanted;
use crate::scopes::Named;
use sql::tree::Statement;
use std::cell::RefCell;

/// A statement that names a table of the map.
pub(crate) struct Case<'c, 't, 'a, 'm> {
    pub(crate) statement: &'t Statement<'a>,
    /// Text that the tree is of.
    pub(crate) text: &'c [u8],
    pub(crate) found: &'c Named<'t, 'a, 'm>,
    pub(crate) facts: &'c Facts<'a>,
    pub(crate) hints: &'c Hints,
    /// Look-ups that must be asked or told first.
    pub(crate) wanted: &'c RefCell<Wanted>,
}
