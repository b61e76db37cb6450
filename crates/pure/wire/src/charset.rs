//! Collations and character sets by id and by name, as MySQL 9 and MariaDB 11 know them.
//!
//! The table itself is in `collations.rs`. Ids are shared by both families up to 255, but 256 and above mean
//! different things or exist in one of them only; names are unambiguous.

use crate::collations::TABLE;

/// A collation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collation {
    /// Id on the wire.
    pub id: u16,
    /// Name.
    pub name: &'static str,
    /// Character set.
    pub charset: &'static str,
    /// The one that a character set has when none is named.
    pub is_default: bool,
}

/// All of them, in the order of their ids.
pub const fn all() -> &'static [Collation] {
    TABLE
}

/// The collation with this id.
pub fn by_id(id: u16) -> Option<&'static Collation> {
    TABLE.binary_search_by_key(&id, |c| c.id).ok().map(|i| &TABLE[i])
}

/// The collation with this name; letters' case does not matter, and `utf8_...` means `utf8mb3_...`.
pub fn by_name(name: &str) -> Option<&'static Collation> {
    let find = |name: &str| TABLE.iter().find(|c| c.name.eq_ignore_ascii_case(name));
    find(name).or_else(|| name.get(..5).filter(|p| p.eq_ignore_ascii_case("utf8_")).and_then(|_| find(&format!("utf8mb3_{}", &name[5..]))))
}

/// The default collation of a character set; letters' case does not matter, and `utf8` means `utf8mb3`.
pub fn default_of(charset: &str) -> Option<&'static Collation> {
    let charset = if charset.eq_ignore_ascii_case("utf8") { "utf8mb3" } else { charset };
    TABLE.iter().find(|c| c.is_default && c.charset.eq_ignore_ascii_case(charset))
}
