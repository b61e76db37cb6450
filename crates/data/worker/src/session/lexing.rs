//! How the settings of a session change the reading of its texts.

use crate::known::reading::bits;
use backend::{Backend, Hold};
use sql::{Blank, Shift};

/// The character sets of [`backend::SHIFTING`].
const SHIFTING: [(&str, Shift); 5] = [
    ("big5", Shift::Big5),
    ("cp932", Shift::Sjis),
    ("gb18030", Shift::Gb18030),
    ("gbk", Shift::Gbk),
    ("sjis", Shift::Sjis),
];

/// Their collations.
pub(crate) const SHIFTING_COLLATIONS: [u16; 19] = [
    1, 13, 28, 84, 87, 88, 95, 96, 248, 249, 250, 1025, 1037, 1052, 1108, 1111, 1112, 1119, 1120,
];

/// The collations with these ids have such a blank, as a bit each. MariaDB has those that do not
/// pad, too: 1024 more.
const LATIN_BLANKS: u128 = bits(&[
    2, 3, 5, 8, 9, 15, 16, 20, 21, 25, 26, 27, 30, 31, 32, 34, 41, 42, 44, 47, 48, 49, 64, 66, 69,
    70, 71, 77, 78, 79, 92, 93, 94, 99,
]);
const DOS_BLANKS: u128 = bits(&[36, 37, 40, 68, 73, 81]);
/// Those of which it is known what ends two dashes only.
const DASHES: u128 = bits(&[4, 6, 39, 53, 72, 80]);

/// Meaning for a text of a collation that MySQL and MariaDB share, by its id.
#[derive(Clone, Copy)]
pub(crate) enum Plain {
    /// Every byte is what it is in ASCII, or part of a character that looks like none.
    Nothing,
    Blank(Blank),
    /// To be looked at.
    No,
}

/// By id; of others nothing is known here.
pub(crate) const PLAIN: [Plain; 248] = {
    let mut all = [Plain::Nothing; 248];
    let mut id = 0;
    while id < 128 {
        all[id] = if LATIN_BLANKS >> id & 1 == 1 {
            Plain::Blank(Blank::Latin)
        } else if DOS_BLANKS >> id & 1 == 1 {
            Plain::Blank(Blank::Dos)
        } else if DASHES >> id & 1 == 1 {
            Plain::Blank(Blank::Dashes)
        } else {
            Plain::Nothing
        };
        id += 1;
    }
    all[0] = Plain::No;
    let mut at = 0;
    while at < SHIFTING_COLLATIONS.len() {
        let id = SHIFTING_COLLATIONS[at] as usize;
        if id < all.len() {
            all[id] = Plain::No;
        }
        at += 1;
    }
    all
};

/// Whether the character set was set there to what nobody has asked yet.
pub(crate) fn is_to_be_asked(backend: &Backend) -> bool {
    backend.holds.has(Hold::Unread)
        && backend
            .local
            .unread
            .session
            .contains("character_set_client")
}

/// Whether a text names something that sets the character set in which it is read: a shifting one,
/// or one that is not named at all.
pub(crate) fn mentions_charset(text: &[u8]) -> bool {
    let has = |word: &str| {
        text.windows(word.len())
            .any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    has("character_set_client")
        || (has("names") || has("char")) && SHIFTING.iter().any(|(name, _)| has(name))
}

/// The character set that words such as `NAMES gbk COLLATE gbk_bin` name.
pub(crate) fn named_in(words: &str) -> &str {
    let name = words
        .strip_prefix("NAMES ")
        .or_else(|| words.strip_prefix("CHARACTER SET "))
        .unwrap_or(words);
    name.split_once(" COLLATE ").map_or(name, |(name, _)| name)
}

/// Tells what the name of a character set, as it was written, means for its characters.
/// `by_itself`: what a server's own means. A number, or whatever else names one, is not known.
pub(crate) fn shift_of(written: &str, by_itself: impl Fn() -> Option<Shift>) -> Option<Shift> {
    let is = |name: &str, other: &&str| name.eq_ignore_ascii_case(other);
    if is_default(written) {
        return by_itself();
    }
    let name = unquoted(written);
    if ["utf8mb4", "utf8", "utf8mb3", "latin1", "binary"]
        .iter()
        .any(|usual| is(name, usual))
    {
        return None;
    }
    match SHIFTING.iter().find(|(shifting, _)| is(name, shifting)) {
        Some((_, shift)) => Some(*shift),
        None if wire::charset::default_of(name).is_some() => None,
        None => Some(Shift::Unknown),
    }
}

pub(crate) fn is_default(written: &str) -> bool {
    written.eq_ignore_ascii_case(backend::DEFAULT)
}

pub(crate) fn unquoted(name: &str) -> &str {
    name.strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
        .unwrap_or(name)
}

pub(crate) fn blank_of_collation(id: u16) -> Option<Blank> {
    let id = if let 1024..2048 = id { id - 1024 } else { id };
    let is_of = |all: u128| id < 128 && all >> id & 1 == 1;
    let sets = [
        (LATIN_BLANKS, Blank::Latin),
        (DOS_BLANKS, Blank::Dos),
        (DASHES, Blank::Dashes),
    ];
    sets.into_iter()
        .find_map(|(all, blank)| is_of(all).then_some(blank))
}

pub(crate) fn shift_of_collation(id: u16) -> Shift {
    wire::charset::by_id(id)
        .and_then(|collation| shift_of(collation.charset, || None))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collations_are_those_of_the_character_sets() {
        for id in 0..2400 {
            if let Some(collation) = wire::charset::by_id(id) {
                let shifts = SHIFTING.iter().any(|(name, _)| *name == collation.charset);
                assert_eq!(
                    SHIFTING_COLLATIONS.contains(&id),
                    shifts,
                    "{} {}",
                    id,
                    collation.name
                );
                assert_eq!(
                    blank_of_collation(id),
                    Blank::of(collation.charset),
                    "{} {}",
                    id,
                    collation.name
                );
            }
        }
        assert_eq!(SHIFTING.map(|(name, _)| name), backend::SHIFTING);
    }

    #[test]
    fn what_is_known_by_the_number_is_what_is_found_by_the_name() {
        for (id, plain) in PLAIN.iter().enumerate() {
            let id = u16::try_from(id).unwrap();
            let blank = blank_of_collation(id);
            let shifts = id == 0 || SHIFTING_COLLATIONS.contains(&id);
            match plain {
                Plain::Nothing => assert!(blank.is_none() && !shifts, "{id}"),
                Plain::Blank(of) => assert!(blank == Some(*of) && !shifts, "{id}"),
                Plain::No => assert!(shifts, "{id}"),
            }
        }
    }

    #[test]
    fn what_does_not_name_a_character_set_may_be_any() {
        let of = |written: &str| shift_of(written, || Some(Shift::Big5));
        for written in ["utf8mb4", "'UTF8'", "latin2", "'ascii'", "cp1251", "binary"] {
            assert_eq!(of(written), None, "{written}");
        }
        assert_eq!(
            (of("GBK"), of("'gbk'"), of("default")),
            (Some(Shift::Gbk), Some(Shift::Gbk), Some(Shift::Big5))
        );
        for written in [
            "28",
            "x'67626b'",
            "0x67626b",
            "_utf8'gbk'",
            "'default'",
            "tibetan",
            "",
        ] {
            assert_eq!(of(written), Some(Shift::Unknown), "{written}");
        }
        assert_eq!(named_in("NAMES gbk COLLATE gbk_bin"), "gbk");
        assert_eq!(named_in("CHARACTER SET 'sjis'"), "'sjis'");
    }

    #[test]
    fn what_may_set_a_shifting_character_set_mentions_it() {
        for text in [
            "SELECT 1; SET NAMES gbk",
            "set CHARACTER SET 'Big5'; DO 1",
            "BEGIN SET @@character_set_client = @a; END",
        ] {
            assert!(mentions_charset(text.as_bytes()), "{text}");
        }
        for text in ["SET NAMES utf8mb4; SELECT 1", "SELECT 'gbk'; SELECT 2", ""] {
            assert!(!mentions_charset(text.as_bytes()), "{text}");
        }
    }
}
