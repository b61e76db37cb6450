//! LOAD DATA LOCAL INFILE: files that arrive whole and once, or not at all.

use super::{Goes, Over, Session};
use crate::client::{Due, Reply};
use crate::judge::Fate;
use crate::mind::Complaint;
use crate::server::{LOAD, NO_FIT, NO_TABLE, line};
use std::time::Duration;

impl Session<'_> {
    pub(super) async fn upload(&mut self) -> Goes {
        let tag = self.tag();
        let pieces = self.pieces();
        if self.chance.percent(12) {
            return self.leave_uploading(&tag, &pieces).await;
        }
        let table = *self
            .chance
            .one_of(&["log", "log", "log", "log", "picky", "nowhere"]);
        let sql = format!("{LOAD}'{tag}' INTO TABLE {table}");
        let line = line(&tag, &pieces.concat());
        let alone = self.own.autocommit && !self.own.in_transaction;
        self.judge.fate(
            &line,
            if alone && table == "log" {
                Fate::Unknown
            } else {
                Fate::Never
            },
        );
        if self.chance.percent(30) {
            self.client.rest = Some((
                self.chance.between(1, 10),
                Duration::from_micros(self.chance.below(5_000)),
            ));
        }
        self.client.file = (tag, pieces);
        self.twin.begin(&sql);
        let reply = self
            .ask(&sql, &[b"\x03", sql.as_bytes()].concat(), Due::Filed)
            .await?;
        self.client.rest = None;
        match (table, reply) {
            ("log", Some(Reply::Ok)) if alone => {
                self.own.use_tables();
                self.judge.fate(&line, Fate::Acknowledged);
            }
            ("log", Some(Reply::Ok)) => {
                self.own.use_tables();
                self.pending.push(line);
            }
            (
                "picky",
                Some(Reply::Err {
                    code: code @ NO_FIT,
                    message,
                }),
            )
            | (
                "nowhere",
                Some(Reply::Err {
                    code: code @ NO_TABLE,
                    message,
                }),
            ) => {
                self.twin.fail(&Complaint(code, message));
            }
            (_, Some(Reply::Err { code, message })) => {
                self.complained(&sql, code, &message);
                if self.refused.is_some() {
                    self.judge.fate(&line, Fate::Never);
                    return Ok(());
                }
                // In the middle of a file there is no way on.
                return Err(Over);
            }
            (_, other) => self.judge.accuse(&self.who, &format!("{sql}: {other:?}")),
        }
        Ok(())
    }

    /// A file, sometimes an empty one.
    fn pieces(&mut self) -> Vec<Vec<u8>> {
        let most = *self.chance.one_of(&[10, 100, 1_000, 20_000, 90_000]);
        let mut byte = self.chance.next();
        let mut piece = |len: u64| {
            let bytes = 0..=len;
            bytes
                .map(|_| {
                    byte = byte.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                    (byte >> 56) as u8
                })
                .collect()
        };
        let lens: Vec<u64> = (0..self.chance.below(12))
            .map(|_| self.chance.below(most))
            .collect();
        lens.into_iter().map(&mut piece).collect()
    }

    /// Goes away in the middle of a file, which was then never sent.
    async fn leave_uploading(&mut self, tag: &str, pieces: &[Vec<u8>]) -> Goes {
        let sql = format!("{LOAD}'{tag}' INTO TABLE log");
        self.judge.tell(&self.who, &format!("{sql}, and leaves"));
        self.judge.fate(&line(tag, &pieces.concat()), Fate::Never);
        let _gone_anyway = self.client.send(&[b"\x03", sql.as_bytes()].concat()).await;
        let asked = self
            .rt
            .timeout(Duration::from_millis(100), self.client.packet())
            .await;
        if matches!(asked, Ok(Ok(_))) {
            let n = usize::try_from(self.chance.below(12)).unwrap_or(0);
            for piece in pieces.iter().take(n) {
                let _gone_anyway = self.client.send_piece(piece).await;
            }
        }
        Err(Over)
    }
}
