//! `LAST_INSERT_ID()` as a session knows it.

use crate::known::generated::Asks;

/// Of the answers since a connection was last asked, so many ids are kept.
const SAID_MAX: usize = 16;

/// Value of `LAST_INSERT_ID()` for a session. Most sessions never insert, and have no room for it.
pub(crate) type OfSession = Option<Box<InsertId>>;

/// Value of `LAST_INSERT_ID()` for a session that has inserted.
#[derive(Debug, Default)]
pub(crate) struct InsertId {
    /// As far as it is certain.
    pub(crate) value: u64,
    /// The hostgroup whose connection knows better. An answer has the id of its row, too, if the
    /// client chose it, and then `LAST_INSERT_ID()` stays as it was.
    pub(crate) from: Option<u32>,
    /// Ids that the answers of the hostgroup in `from` have said.
    pub(crate) said: Vec<u64>,
    /// Question about the table of the last INSERT, to be asked when that costs nothing else.
    pub(crate) asks: Option<Box<Asks>>,
}

/// Takes over the value of `LAST_INSERT_ID()` that another process knows.
pub(crate) fn of(value: u64) -> OfSession {
    (value > 0).then(|| {
        Box::new(InsertId {
            value,
            ..InsertId::default()
        })
    })
}

impl InsertId {
    /// From now on the connection of this hostgroup knows better. Whether another did, or none.
    fn begin(&mut self, hostgroup: u32) -> bool {
        let new = self.from != Some(hostgroup);
        if new {
            self.said.clear();
            self.from = Some(hostgroup);
        }
        new
    }

    /// An answer there has this id, or none. Whether another connection knew better before, or
    /// none.
    pub(crate) fn say_from(&mut self, hostgroup: u32, id: u64) -> bool {
        let elsewhere = self.begin(hostgroup);
        if self.said.len() == SAID_MAX {
            self.said.remove(0);
        }
        self.said.extend((id != 0).then_some(id));
        elsewhere
    }

    /// The connection of a hostgroup has been asked. `before`: what it was there before the session
    /// came, if that is known.
    pub(crate) fn hear(&mut self, hostgroup: u32, before: Option<u64>, now: u64) {
        if self.from == Some(hostgroup) {
            // Made by the session, rather than left by another one.
            if before.is_some_and(|before| before != now) || self.said.contains(&now) {
                self.value = now;
            }
            self.from = None;
            self.said.clear();
        }
    }

    /// Returns the value of `LAST_INSERT_ID()` as far as the session knows it. `kept`: whether the
    /// session still has the connection of a hostgroup that knows better. One that broke, or whose
    /// server was taken away, has said the value in its answers.
    pub(crate) fn now(&self, kept: impl Fn(u32) -> bool) -> u64 {
        match self.from {
            Some(hostgroup) if !kept(hostgroup) => self.said.last().copied().unwrap_or(self.value),
            _ => self.value,
        }
    }

    /// The connection is gone.
    pub(crate) fn lose(&mut self, hostgroup: u32) {
        if self.from == Some(hostgroup) {
            self.value = self.said.pop().unwrap_or(self.value);
            self.from = None;
            self.said.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value is 3 so far; hostgroup 0 has said `said`, had `before` and has `now`.
    fn heard(said: &[u64], before: Option<u64>, now: u64) -> u64 {
        let mut id = InsertId {
            value: 3,
            from: Some(0),
            said: said.to_vec(),
            asks: None,
        };
        id.hear(1, None, 99);
        assert_eq!(id.value, 3, "of another hostgroup");
        id.hear(0, before, now);
        assert!(id.from.is_none() && id.said.is_empty());
        id.value
    }

    #[test]
    fn an_id_that_a_client_chose_is_no_last_insert_id() {
        assert_eq!(heard(&[5], Some(4), 5), 5, "made by the server");
        assert_eq!(
            heard(&[1000], Some(4), 4),
            3,
            "chosen by the client: what is there is another session's"
        );
        assert_eq!(heard(&[5, 1000], Some(4), 5), 5, "made, then chosen");
        assert_eq!(
            heard(&[4], Some(4), 4),
            4,
            "made in one table as in another before"
        );
        assert_eq!(
            heard(&[], Some(3), 77),
            77,
            "LAST_INSERT_ID(77), and no word of it"
        );
        assert_eq!(heard(&[5], None, 5), 5);
        assert_eq!(
            heard(&[1000], None, 4),
            3,
            "nobody knows what was there, but it is not ours"
        );
    }

    #[test]
    fn of_a_connection_that_is_gone_what_it_said_last_counts() {
        let mut id = InsertId {
            value: 3,
            from: Some(0),
            said: vec![5, 6],
            asks: None,
        };
        id.lose(1);
        assert_eq!(id.value, 3);
        id.lose(0);
        assert_eq!(id.value, 6);
    }
}
