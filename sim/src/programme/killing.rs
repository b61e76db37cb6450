//! KILL: another session of the same user ends what this one runs, or the session.

use super::{Goes, Over, Session};
use crate::client::{Client, Due, Reply};
use std::time::Duration;

/// Target of a KILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fire {
    Statement,
    Session,
}

impl Session<'_> {
    /// Runs statements while somebody says KILL. Afterwards nothing is ended any more, or
    /// everything.
    pub(super) async fn under_fire(&mut self) -> Goes {
        let fire = if self.chance.percent(70) {
            Fire::Statement
        } else {
            Fire::Session
        };
        let what = if fire == Fire::Statement {
            "KILL QUERY"
        } else {
            "KILL"
        };
        let sql = format!("{what} {}", self.client.number);
        let (done, said) = rt::local::oneshot();
        let (rt, proxy, user, mut chance) = (
            self.rt.clone(),
            self.proxy.clone(),
            self.user,
            self.chance.clone(),
        );
        self.chance.next();
        self.rt.spawn(async move {
            rt.sleep(Duration::from_micros(chance.below(40_000))).await;
            let reply = match Client::log_in(&rt, &proxy, user, None, 8, 0, &mut chance).await {
                Ok(mut client) => client
                    .ask(&[b"\x03", sql.as_bytes()].concat(), Due::Text)
                    .await
                    .ok(),
                Err(_) => None,
            };
            let _nobody = done.send(reply);
        });
        self.under_fire = Some(fire);
        let went = self.run_under_fire().await;
        let said = self.rt.timeout(super::PATIENCE, said).await;
        self.under_fire = None;
        match said {
            Ok(Some(Some(Reply::Ok))) => {}
            // The session was over before.
            Ok(Some(Some(Reply::Err { code: 1094, .. }))) if went.is_err() => {}
            // So it was if a connection broke right behind its last answer, of which it has not
            // heard.
            Ok(Some(Some(Reply::Err {
                code: 1094,
                message,
            }))) => {
                self.told = true;
                self.judge.excuse(&self.who, &format!("{what}: {message}"));
            }
            Ok(Some(Some(Reply::Err { code, message }))) => self.complained(what, code, &message),
            Ok(Some(Some(other))) => self.judge.accuse(&self.who, &format!("{what}: {other:?}")),
            Ok(_) => self.judge.excuse(&self.who, &format!("{what}: no answer")),
            Err(_) => self
                .judge
                .accuse(&self.who, &format!("{what}: never answered")),
        }
        went?;
        if fire == Fire::Session {
            Err(Over)
        } else {
            Ok(())
        }
    }

    async fn run_under_fire(&mut self) -> Goes {
        for _ in 0..self.chance.between(1, 3) {
            match self.chance.below(12) {
                7 => self.by_name_alone().await?,
                8 if self.client.several => self.several().await?,
                0 => self.few().await?,
                1 => self.insert().await?,
                2 => self.state(false).await?,
                3 => self.big().await?,
                4 => self.upload().await?,
                5 | 6 if self.client.bulk => self.many_rows().await?,
                _ => {
                    let tag = self.tag();
                    let sql = format!("SELECT '{tag}' FROM slow");
                    self.plain(&sql, &tag, 1 + tag.len() % 3).await?;
                }
            }
        }
        Ok(())
    }
}
