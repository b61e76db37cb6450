//! How servers read texts of sessions that have not said how.

/// How the servers of a core read texts for sessions that have not said how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnModes {
    /// Of [`crate::MODES`] those that all servers have; who has not said anything has none. A
    /// client quotes by them.
    pub flags: u16,
    /// Not all of them read a backslash alike.
    pub differ: bool,
    /// By itself one gives a session a character set in which a backslash or a backquote may be
    /// part of a character.
    pub shifts: bool,
    /// The byte above ASCII that is a blank in the character sets that they give by themselves.
    pub blank: Option<sql::Blank>,
}

/// The character sets in which a backslash or a backquote may be the second byte of a character.
pub const SHIFTING: [&str; 5] = ["big5", "cp932", "gb18030", "gbk", "sjis"];

impl OwnModes {
    /// Of servers, by what all connections of each have said and what any of them has: a flag that
    /// a client is told wrongly makes it quote so that its texts end where they should not.
    pub(crate) fn of(said: &[Option<(u16, u16)>]) -> Self {
        let all = said
            .iter()
            .map(|said| said.map_or(0, |(all, _)| all))
            .reduce(|a, b| a & b)
            .unwrap_or(0);
        let any = said.iter().flatten().fold(0, |flags, (_, any)| flags | any);
        Self {
            flags: all,
            differ: any & !all & wire::status::NO_BACKSLASH_ESCAPES != 0,
            shifts: false,
            blank: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::status::{ANSI_QUOTES, NO_BACKSLASH_ESCAPES};

    #[test]
    fn a_client_is_told_what_all_servers_do() {
        let of = |said: &[Option<(u16, u16)>]| {
            let own = OwnModes::of(said);
            (own.flags, own.differ)
        };
        let alike = |flags| Some((flags, flags));
        assert_eq!(of(&[]), (0, false));
        assert_eq!(of(&[None, alike(0)]), (0, false));
        assert_eq!(
            of(&[alike(NO_BACKSLASH_ESCAPES)]),
            (NO_BACKSLASH_ESCAPES, false)
        );
        assert_eq!(of(&[alike(ANSI_QUOTES), alike(0)]), (0, false));
        // One that has not said anything, another cluster, and one whose connections are of two
        // kinds.
        assert_eq!(of(&[alike(NO_BACKSLASH_ESCAPES), None]), (0, true));
        assert_eq!(
            of(&[alike(NO_BACKSLASH_ESCAPES | ANSI_QUOTES), alike(0)]),
            (0, true)
        );
        assert_eq!(of(&[Some((0, NO_BACKSLASH_ESCAPES))]), (0, true));
    }
}
