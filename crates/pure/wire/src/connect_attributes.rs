//! Connection attributes: what a client says of itself when it logs in (CLIENT_CONNECT_ATTRS), such
//! as `program_name`.
//!
//! <https://dev.mysql.com/doc/refman/en/performance-schema-connection-attribute-tables.html>

use crate::Malformed;
use crate::read::Reader;
use crate::write::Write as _;

/// More bytes of them are refused, as the servers do.
pub const LEN_MAX: usize = 65535;

/// Names and values as they came: in the character set of the login, mostly ASCII. Compact, because
/// every session keeps some.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectAttributes(Box<[u8]>); // pairs of strings with their lengths, <= LEN_MAX

impl ConnectAttributes {
    /// Reads the block of a login or COM_CHANGE_USER.
    ///
    /// # Errors
    /// More than [`LEN_MAX`] bytes, or no such block.
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let block = r.lenenc_bytes()?;
        if block.len() > LEN_MAX {
            return Err(Malformed::new(
                "connection attributes are longer than 65535 bytes",
            ));
        }
        let mut pairs = Reader::new(block);
        while !pairs.is_empty() {
            pairs.lenenc_bytes()?;
            pairs.lenenc_bytes()?;
        }
        Ok(Self(block.into()))
    }

    /// Writes the block.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.lenenc_bytes(&self.0);
    }

    /// These, as far as there is room.
    #[must_use]
    pub fn of(pairs: &[(Vec<u8>, Vec<u8>)]) -> Self {
        let mut out = Vec::new();
        for (name, value) in pairs {
            let before = out.len();
            out.lenenc_bytes(name);
            out.lenenc_bytes(value);
            if out.len() > LEN_MAX {
                out.truncate(before);
            }
        }
        Self(out.into())
    }

    /// Name and value of each.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut r = Reader::new(&self.0);
        std::iter::from_fn(move || Some((r.lenenc_bytes().ok()?, r.lenenc_bytes().ok()?)))
    }

    /// None?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the attributes of a connection that is opened for a client with these: `own` first,
    /// which counts for more; then the client's, as far as there is room; then of `defaults` what
    /// the client has not.
    #[must_use]
    pub fn with(&self, own: &[(&str, &str)], defaults: &[(&str, &str)]) -> Self {
        let has = |pairs: &[(&str, &str)], name: &[u8]| {
            pairs.iter().any(|(known, _)| known.as_bytes() == name)
        };
        let theirs = |name: &str| self.iter().any(|(known, _)| known == name.as_bytes());
        let mut out = Vec::with_capacity(self.0.len() + 64);
        let mut put = |name: &[u8], value: &[u8]| {
            let before = out.len();
            out.lenenc_bytes(name);
            out.lenenc_bytes(value);
            if out.len() > LEN_MAX {
                out.truncate(before);
            }
        };
        own.iter()
            .for_each(|(name, value)| put(name.as_bytes(), value.as_bytes()));
        self.iter()
            .filter(|(name, _)| !has(own, name))
            .for_each(|(name, value)| put(name, value));
        defaults
            .iter()
            .filter(|(name, _)| !theirs(name))
            .for_each(|(name, value)| put(name.as_bytes(), value.as_bytes()));
        Self(out.into())
    }
}

impl FromIterator<(String, String)> for ConnectAttributes {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        let mut out = Vec::new();
        for (name, value) in pairs {
            out.lenenc_bytes(name.as_bytes());
            out.lenenc_bytes(value.as_bytes());
        }
        Self(out.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> ConnectAttributes {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn our_own_count_for_more_and_defaults_for_less_than_the_clients() {
        let theirs = of(&[
            ("program_name", "shop"),
            ("millrace_session_id", "forged"),
            ("_pid", "7"),
        ]);
        let all = theirs.with(
            &[("millrace_session_id", "12")],
            &[("program_name", "millrace"), ("_client_name", "millrace")],
        );
        assert_eq!(
            all,
            of(&[
                ("millrace_session_id", "12"),
                ("program_name", "shop"),
                ("_pid", "7"),
                ("_client_name", "millrace")
            ])
        );
        assert_eq!(
            ConnectAttributes::default().with(&[], &[("a", "b")]),
            of(&[("a", "b")])
        );
    }

    #[test]
    fn a_server_is_never_sent_more_than_it_takes() {
        let theirs = of(&[
            ("a", &"x".repeat(65_000)),
            ("b", &"y".repeat(520)),
            ("c", "z"),
        ]);
        assert!(theirs.0.len() <= LEN_MAX);
        let all = theirs.with(&[("millrace_session_id", "1234567890")], &[]);
        assert!(all.0.len() <= LEN_MAX);
        let names: Vec<_> = all.iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [&b"millrace_session_id"[..], b"a", b"c"],
            "b has no room"
        );
    }
}
