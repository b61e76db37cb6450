//! XA transactions, as servers have them: one that is prepared outlives its connection, and anybody
//! may end it then.

use super::{Mind, Said, syntax};
use crate::belongings::Ground;
use crate::mind::Complaint;

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Active,
    Idle,
    Prepared,
}

/// The one that is bound to a connection.
#[derive(Debug)]
pub(super) struct Xa {
    id: String,
    phase: Phase,
}

impl Mind {
    pub(super) fn xa(
        &mut self,
        sql: &str,
        me: u32,
        ground: &mut Ground,
    ) -> Result<Said, Complaint> {
        let words: Vec<&str> = sql.split_whitespace().collect();
        let (Some(verb), Some(id)) = (words.get(1), words.get(2)) else {
            return Err(syntax(sql));
        };
        let one_phase = words.get(3) == Some(&"ONE");
        let here = self
            .xa
            .as_ref()
            .filter(|xa| xa.id == *id)
            .map(|xa| xa.phase);
        match (*verb, here) {
            ("START", None) if self.xa.is_none() && !self.in_transaction => {
                self.begin();
                self.xa = Some(Xa {
                    id: (*id).to_owned(),
                    phase: Phase::Active,
                });
            }
            ("START", _) => {
                return Err(Complaint(
                    1400,
                    "XAER_OUTSIDE: Some work is done outside global transaction".to_owned(),
                ));
            }
            ("END", Some(Phase::Active)) => {
                self.xa = Some(Xa {
                    id: (*id).to_owned(),
                    phase: Phase::Idle,
                })
            }
            ("PREPARE", Some(Phase::Idle)) => {
                let lines = std::mem::take(&mut self.pending);
                let bound = (!ground.detaches).then_some(me);
                ground.xa.insert((*id).to_owned(), (lines, bound));
                if ground.detaches {
                    self.roll_back();
                    self.xa = None;
                } else {
                    self.xa = Some(Xa {
                        id: (*id).to_owned(),
                        phase: Phase::Prepared,
                    });
                }
            }
            ("COMMIT", Some(Phase::Idle)) if one_phase => {
                self.commit(&mut ground.log);
                self.xa = None;
            }
            ("ROLLBACK", Some(Phase::Idle)) => {
                self.roll_back();
                self.xa = None;
            }
            ("COMMIT" | "ROLLBACK", None | Some(Phase::Prepared)) if !one_phase => {
                let known = ground
                    .xa
                    .get(*id)
                    .is_some_and(|(_, bound)| bound.is_none_or(|bound| bound == me));
                if !known {
                    return Err(Complaint(1397, "XAER_NOTA: Unknown XID".to_owned()));
                }
                let (mut lines, _) = ground.xa.remove(*id).unwrap_or_default();
                if *verb == "COMMIT" {
                    ground.log.append(&mut lines);
                }
                if here.is_some() {
                    self.roll_back();
                    self.xa = None;
                }
            }
            _ => {
                return Err(Complaint(
                    1399,
                    format!(
                        "XAER_RMFAIL: {sql} cannot be executed when the transaction is {here:?}"
                    ),
                ));
            }
        }
        Ok(Said::Ok)
    }

    /// Whether a reset leaves it of no use: so it is with MariaDB's, after a transaction that was
    /// prepared there.
    pub(super) fn is_spoiled(&self) -> bool {
        self.spoiled
            || self
                .xa
                .as_ref()
                .is_some_and(|xa| xa.phase == Phase::Prepared)
    }

    /// Whether tables can be used now.
    pub(super) fn may_use_tables(&self, sql: &str) -> Result<(), Complaint> {
        let uses = [
            " FROM few",
            " FROM state",
            " FROM big",
            " FROM log",
            " INTO log",
        ]
        .iter()
        .any(|table| sql.contains(table));
        let ends = ["BEGIN", "COMMIT", "ROLLBACK"].contains(&sql);
        match &self.xa {
            _ if self.spoiled && uses => Err(Complaint(
                1031,
                "Storage engine InnoDB doesn't have this option".to_owned(),
            )),
            Some(Xa { phase, .. }) if ends || uses && *phase != Phase::Active => Err(Complaint(
                1399,
                format!("XAER_RMFAIL: {sql} cannot be executed when the transaction is {phase:?}"),
            )),
            _ => Ok(()),
        }
    }
}
