//! Statements about what a session has on its connections: the client's own [`Belongings`] say what
//! each answer must be.

use super::schema::Refusal;
use super::{Goes, Over, Session};
use crate::belongings::Answer;
use crate::client::Reply;
use crate::mind::Complaint;
use std::time::Duration;

impl Session<'_> {
    pub(super) async fn having(&mut self) -> Goes {
        if !self.own.autocommit || !self.has_belongings {
            return Ok(());
        }
        if self.is_somewhere_unknown() && self.chance.percent(60) {
            return self.use_schema().await;
        }
        // Whatever it leaves may keep the session at its server.
        self.pinned = true;
        let tag = self.tag();
        let writer = if self.chance.percent(50) {
            " FROM vars FOR UPDATE"
        } else {
            ""
        };
        match self.chance.below(26) {
            0..=2 => {
                let sql = format!("SET @a='{tag}'");
                let mut done = false;
                self.run(&sql, false, |_| done = true).await?;
                if done {
                    self.twin.user.insert("a".to_owned(), Some(tag));
                }
                Ok(())
            }
            3 => self.agree(&format!("SELECT '{tag}' INTO @b")).await,
            4 => {
                let mut done = false;
                self.run("SET @b=@a", false, |_| done = true).await?;
                if done {
                    let value = self.twin.user.get("a").cloned().flatten();
                    self.twin.user.insert("b".to_owned(), value);
                }
                Ok(())
            }
            5..=7 => self.agree(&format!("SELECT '{tag}', @a, @b{writer}")).await,
            8 | 9 => {
                self.agree(&format!("INSERT INTO ids VALUES ('{tag}'),('{tag}x')"))
                    .await?;
                self.between().await?;
                self.agree(&format!("SELECT '{tag}', LAST_INSERT_ID(){writer}"))
                    .await?;
                self.agree("SELECT tag FROM ids WHERE id = LAST_INSERT_ID() FOR UPDATE")
                    .await
            }
            10 => {
                match self.chance.below(4) {
                    0 => {
                        self.agree(&format!(
                            "INSERT INTO ids VALUES ('{tag}'),('{tag}x'),('{tag}y')"
                        ))
                        .await?
                    }
                    1 => self.insert().await?,
                    2 => self.few().await?,
                    _ => Box::pin(self.step()).await?,
                }
                let item = if self.chance.percent(50) {
                    format!("'{tag}', ROW_COUNT(){writer}")
                } else {
                    "ROW_COUNT()".to_owned()
                };
                self.agree(&format!("SELECT {item}")).await?;
                self.agree("SELECT ROW_COUNT()").await
            }
            21 | 22 => self.found().await,
            11 | 12 | 18..=20 => {
                let what = *self
                    .chance
                    .one_of(&["warny", "nowhere", "nothing", "nothing"]);
                let writer = if self.chance.percent(40) {
                    " FOR UPDATE"
                } else {
                    ""
                };
                if what == "nothing" {
                    self.state(false).await?;
                } else {
                    self.agree(&format!("SELECT '{tag}' FROM {what}{writer}"))
                        .await?;
                }
                if self.chance.percent(50) {
                    self.between().await?;
                }
                self.warnings().await?;
                self.between().await
            }
            13 => self.with_temporary_table(&tag).await,
            24 => self.with_handler(&tag).await,
            25 if self.manners.mariadb => self.with_sequence().await,
            14 => {
                self.agree(&format!("SELECT GET_LOCK('{tag}', 0)")).await?;
                self.keeps += 1;
                for _ in 0..self.chance.below(4) {
                    // Who has a lock on one server and waits for another waits for whoever does so
                    // the other way round.
                    if self.manners.room {
                        Box::pin(self.step()).await?
                    } else {
                        self.between().await?
                    }
                }
                self.agree(&format!("SELECT RELEASE_LOCK('{tag}')")).await?;
                self.keeps = self.keeps.saturating_sub(1);
                Ok(())
            }
            15 if !self.own.in_transaction => {
                self.agree(&format!("LOCK TABLES log WRITE /* '{tag}' */"))
                    .await?;
                self.keeps += 1;
                self.insert().await?;
                self.agree("UNLOCK TABLES").await?;
                self.keeps = self.keeps.saturating_sub(1);
                Ok(())
            }
            16 if self.chance.percent(30) => {
                // Nobody knows what it has left: the session stays there.
                self.pinned = true;
                self.keeps += 1;
                // The other sets @b and nothing else: where the server says so, the session goes on
                // elsewhere.
                let program = if self.chance.percent(50) {
                    "change"
                } else {
                    "hide"
                };
                self.agree(&format!("CALL {program}('{tag}')")).await?;
                if self.chance.percent(50) {
                    self.rt
                        .sleep(Duration::from_millis(self.chance.below(20)))
                        .await;
                }
                self.state(self.own.in_transaction).await
            }
            _ => {
                let hides = self.chance.percent(30);
                if hides {
                    // What has no name stays where it was set.
                    self.pinned = true;
                    self.keeps += 1;
                }
                let table = if hides { "hides" } else { "fires" };
                self.agree(&format!("INSERT INTO {table} VALUES ('{tag}')"))
                    .await?;
                self.state(self.own.in_transaction).await
            }
        }
    }

    /// FOUND_ROWS(), as far as it follows the session.
    async fn found(&mut self) -> Goes {
        if self.chance.percent(30) {
            self.few().await?;
        } else if self.chance.percent(30) {
            let tag = self.tag();
            let writer = if self.chance.percent(50) {
                " FOR UPDATE"
            } else {
                ""
            };
            self.agree(&format!("SELECT '{tag}' FROM warny{writer}"))
                .await?;
        } else {
            let tag = self.tag();
            let sql = format!("SELECT SQL_CALC_FOUND_ROWS '{tag}' FROM few LIMIT 1");
            self.plain(&sql, &tag, 1).await?;
            if self.twin.found.is_some() {
                self.twin.found = Some(1 + tag.len() as u64 % 3);
                self.calculated = true;
            }
            match self.chance.below(5) {
                0 => self.insert().await?,
                1 => self.set().await?,
                2 => self.use_schema().await?,
                3 => {
                    self.rt
                        .sleep(Duration::from_micros(self.chance.below(30_000)))
                        .await
                }
                _ => {}
            }
        }
        if self.chance.percent(30) {
            self.rt
                .sleep(Duration::from_micros(self.chance.below(30_000)))
                .await;
        }
        // Once a transaction has begun elsewhere, nobody asks where the rows were found.
        while self.own.autocommit && self.twin.found.is_some() && self.chance.percent(80) {
            let sql = if self.chance.percent(80) {
                "SELECT FOUND_ROWS()"
            } else {
                "SELECT CONNECTION_ID()"
            };
            self.agree(sql).await?;
        }
        Ok(())
    }

    /// Notes what an answer leaves to be counted.
    pub(super) fn count(&mut self, words: &str, reply: &Reply) {
        let selects = words.starts_with("SELECT") || words.starts_with("EXECUTE");
        let found = self.twin.found;
        self.twin.found = match reply {
            Reply::Rows(rows) if selects => Some(rows.len() as u64),
            Reply::Ok
                if self.calculated
                    && ["INSERT", "SET", "BEGIN", "COMMIT", "ROLLBACK", "USE"]
                        .iter()
                        .any(|verb| words.starts_with(verb)) =>
            {
                found
            }
            _ => None,
        };
        self.calculated &= self.twin.found.is_some() && !selects;
        self.twin.row_count = match reply {
            Reply::Ok => i64::try_from(self.client.affected).unwrap_or(0),
            Reply::Prepared { .. } => self.twin.row_count,
            _ => -1,
        };
    }

    /// Something else, or a while, sometimes.
    async fn between(&mut self) -> Goes {
        if self.chance.percent(30) {
            self.few().await?;
        }
        if self.chance.percent(40) {
            self.rt
                .sleep(Duration::from_micros(self.chance.below(30_000)))
                .await;
        }
        Ok(())
    }

    /// Asks what the statement before has left, in one of the ways of asking, or in several.
    async fn warnings(&mut self) -> Goes {
        let ways = [
            "SHOW WARNINGS",
            "SHOW ERRORS",
            "SHOW COUNT(*) WARNINGS",
            "SHOW COUNT(*) ERRORS",
            "SELECT @@warning_count",
        ];
        if self.refused == Some(Refusal::OnTheWay) || self.broke {
            return Ok(());
        }
        for _ in 0..self.chance.between(1, 3) {
            let way = if self.chance.percent(50) {
                ways[0]
            } else {
                *self.chance.one_of(&ways)
            };
            self.agree(way).await?;
            if self.chance.percent(30) {
                self.rt
                    .sleep(Duration::from_micros(self.chance.below(20_000)))
                    .await;
            }
        }
        Ok(())
    }

    async fn with_temporary_table(&mut self, tag: &str) -> Goes {
        let name = *self.chance.one_of(&["t1", "t2"]);
        self.agree(&format!("CREATE TEMPORARY TABLE {name} /* '{tag}' */"))
            .await?;
        self.keeps += 1;
        // It draws all statements to its server.
        let drawn = std::mem::replace(&mut self.drawn, true);
        for _ in 0..self.chance.below(4) {
            let tag = self.tag();
            self.agree(&format!("INSERT INTO {name} VALUES ('{tag}')"))
                .await?;
            Box::pin(self.step()).await?;
            self.agree(&format!("SELECT tag FROM {name}")).await?;
        }
        self.agree(&format!("DROP TEMPORARY TABLE {name}")).await?;
        self.drawn = drawn;
        self.keeps = self.keeps.saturating_sub(1);
        Ok(())
    }

    /// A table that is read row by row, with other things between.
    async fn with_handler(&mut self, tag: &str) -> Goes {
        let name = *self.chance.one_of(&["h1", "h2"]);
        self.agree(&format!("HANDLER {name} OPEN /* '{tag}' */"))
            .await?;
        self.keeps += 1;
        // As a temporary table does.
        let drawn = std::mem::replace(&mut self.drawn, true);
        for _ in 0..self.chance.below(4) {
            let how = *self.chance.one_of(&["FIRST", "NEXT", "NEXT"]);
            self.agree(&format!("HANDLER {name} READ {how}")).await?;
            Box::pin(self.step()).await?;
        }
        self.agree(&format!("HANDLER {name} CLOSE")).await?;
        self.drawn = drawn;
        self.keeps = self.keeps.saturating_sub(1);
        Ok(())
    }

    /// A number of a sequence, which the session can ask for again until it ends.
    async fn with_sequence(&mut self) -> Goes {
        // From here on it stays there.
        self.drawn = true;
        self.keeps += 1;
        if self.twin.last_value.is_none() || self.chance.percent(40) {
            let tag = self.tag();
            let sql = format!("SELECT '{tag}', NEXTVAL(s) FROM vars FOR UPDATE");
            match self.query(&sql).await? {
                Some(Reply::Rows(rows)) => {
                    let value = rows
                        .first()
                        .and_then(|row| row.get(1).cloned().flatten()?.parse().ok());
                    self.judge
                        .check(value > self.twin.last_value, &self.who, || {
                            format!("{sql}: {rows:?}")
                        });
                    self.twin.last_value = value;
                }
                Some(Reply::Err { code, message }) => {
                    self.complained(&sql, code, &message);
                    return Err(Over);
                }
                other => self.judge.accuse(&self.who, &format!("{sql}: {other:?}")),
            }
        }
        for _ in 0..self.chance.below(3) {
            Box::pin(self.step()).await?;
            let tag = self.tag();
            self.agree(&format!("SELECT '{tag}', LASTVAL(s) FROM vars FOR UPDATE"))
                .await?;
        }
        Ok(())
    }

    /// A statement whose answer must be what the same session would get directly.
    pub(super) async fn agree(&mut self, sql: &str) -> Goes {
        self.twin.begin(sql);
        let wanted = self
            .twin
            .say(&mut self.ground, self.client.number, sql, |_| None)
            .expect("a statement of this language");
        let reply = self.query_only(sql).await?;
        self.agrees(sql, wanted, reply)
    }

    /// The answer to such a statement.
    pub(super) fn agrees(
        &mut self,
        sql: &str,
        wanted: Result<Answer, Complaint>,
        reply: Option<Reply>,
    ) -> Goes {
        match (wanted, reply) {
            (Ok(answer), Some(Reply::Ok)) if answer.columns == 0 => self.agreed(sql, answer),
            (Ok(answer), Some(Reply::Rows(rows))) if answer.columns > 0 => {
                self.judge.check(rows == answer.rows, &self.who, || {
                    format!("{sql}: {rows:?} instead of {:?}", answer.rows)
                });
            }
            (Err(complaint), Some(Reply::Err { code, message })) if code == complaint.0 => {
                self.judge.check(message == complaint.1, &self.who, || {
                    format!("{sql}: somebody else's error: {message}")
                });
                self.twin.fail(&complaint);
            }
            // Kept for nothing else, warnings and rows found may go with their connection. That is
            // said, until the next statement.
            (
                _,
                Some(Reply::Err {
                    code: 1235,
                    message,
                }),
            ) if asks_for_warnings(sql) || sql == "SELECT FOUND_ROWS()" => {
                self.judge.excuse(&self.who, &format!("{sql}: {message}"));
            }
            (_, Some(Reply::Err { code, message })) => {
                // Whether it was done is not known: nothing more is expected of this session.
                self.complained(sql, code, &message);
                return Err(Over);
            }
            (wanted, reply) => self.judge.accuse(
                &self.who,
                &format!("{sql}: {reply:?} instead of {wanted:?}"),
            ),
        }
        Ok(())
    }

    fn agreed(&mut self, sql: &str, answer: Answer) {
        let affected = self.client.affected;
        self.judge
            .check(affected == answer.affected, &self.who, || {
                format!("{sql}: {affected} rows instead of {}", answer.affected)
            });
        if answer.insert_id != 0 {
            // The server counts for all.
            let first = self.client.insert_id;
            self.judge
                .check(first > 0, &self.who, || format!("{sql}: no id"));
            self.twin.insert_id = first;
            let tags: Vec<String> = sql
                .split('\'')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect();
            self.ground.ids.clear();
            self.ground.ids.extend((first..).zip(tags));
        }
        if let Some((_, value)) = answer.changed {
            self.own.time_zone = format!("'{value}'");
        }
        if sql.starts_with("LOCK TABLES") {
            self.own.end();
            self.leave_spot();
        }
    }
}

fn asks_for_warnings(sql: &str) -> bool {
    sql.starts_with("SHOW ") || sql == "SELECT @@warning_count"
}
