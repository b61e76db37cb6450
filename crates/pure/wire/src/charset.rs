//! Collations and character sets by id and by name, as MySQL 9 and MariaDB 11 know them.
//!
//! The table itself is in `collations.rs`. A few names have two ids (`utf8mb4_croatian_ci` is 245
//! in MySQL, 608 in MariaDB); the lower one is found by name.

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

impl Collation {
    /// Whether its characters have two or four bytes each, also those of ASCII: no client may speak
    /// so.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        matches!(self.charset, "ucs2" | "utf16" | "utf16le" | "utf32")
    }
}

/// All of them, in the order of their ids.
pub const fn all() -> &'static [Collation] {
    TABLE
}

/// The collation with this id.
pub fn by_id(id: u16) -> Option<&'static Collation> {
    TABLE
        .binary_search_by_key(&id, |c| c.id)
        .ok()
        .map(|i| &TABLE[i])
}

/// The collation with this name; letters' case does not matter, and `utf8_...` means `utf8mb3_...`.
pub fn by_name(name: &str) -> Option<&'static Collation> {
    let find = |name: &str| TABLE.iter().find(|c| c.name.eq_ignore_ascii_case(name));
    find(name).or_else(|| {
        name.get(..5)
            .filter(|p| p.eq_ignore_ascii_case("utf8_"))
            .and_then(|_| find(&format!("utf8mb3_{}", &name[5..])))
    })
}

/// The default collation of a character set; letters' case does not matter, and `utf8` means
/// `utf8mb3`.
///
/// For utf8mb4 it is MySQL 8's `utf8mb4_0900_ai_ci`. Servers differ here (MariaDB 10.11 says
/// `utf8mb4_general_ci`, 11.6 `utf8mb4_uca1400_ai_ci`), so `SET NAMES utf8mb4` is best passed on as
/// it was written.
pub fn default_of(charset: &str) -> Option<&'static Collation> {
    let charset = if charset.eq_ignore_ascii_case("utf8") {
        "utf8mb3"
    } else {
        charset
    };
    TABLE
        .iter()
        .find(|c| c.is_default && c.charset.eq_ignore_ascii_case(charset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise_and_every_character_set_has_one_default() {
        assert!(all().windows(2).all(|w| w[0].id < w[1].id));
        let mut sets: Vec<_> = all().iter().map(|c| c.charset).collect();
        sets.sort_unstable();
        sets.dedup();
        assert_eq!(sets.len(), 41);
        for set in sets {
            assert_eq!(
                all()
                    .iter()
                    .filter(|c| c.charset == set && c.is_default)
                    .count(),
                1,
                "{set}"
            );
        }
        assert!(
            all()
                .iter()
                .all(|c| c.name == c.charset || c.name.starts_with(&format!("{}_", c.charset)))
        );
    }

    #[test]
    fn well_known_collations_are_found_both_ways() {
        for (id, name) in [
            (8, "latin1_swedish_ci"),
            (33, "utf8mb3_general_ci"),
            (45, "utf8mb4_general_ci"),
            (46, "utf8mb4_bin"),
            (63, "binary"),
            (224, "utf8mb4_unicode_ci"),
            (248, "gb18030_chinese_ci"),
            (255, "utf8mb4_0900_ai_ci"),
            (309, "utf8mb4_0900_bin"),
            (323, "utf8mb4_mn_cyrl_0900_as_cs"),
            (2304, "utf8mb4_uca1400_ai_ci"),
        ] {
            assert_eq!(by_id(id).map(|c| c.name), Some(name));
            assert_eq!(by_name(&name.to_uppercase()).map(|c| c.id), Some(id));
        }
        assert_eq!(by_name("utf8_general_ci").map(|c| c.id), Some(33));
        assert_eq!(default_of("UTF8").map(|c| c.id), Some(33));
        assert_eq!(default_of("latin1").map(|c| c.id), Some(8));
        assert_eq!(
            (
                by_id(17),
                by_name("klingon"),
                by_name("utf8_é"),
                default_of("")
            ),
            (None, None, None, None)
        );
    }
}
