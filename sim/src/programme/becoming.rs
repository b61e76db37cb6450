//! COM_CHANGE_USER: the same connection, and another session.

use super::{CHARSETS, Goes, Over, Own, Session, USERS};
use crate::client::{Broken, Reply};
use crate::mind::{NO_ROLE, SCHEMAS};
use crate::server::{COURIER, PASSWORD, SLEEPER};

impl Session<'_> {
    /// Becomes somebody, who may be who it was, with nothing of what it had.
    pub(super) async fn become_another(&mut self) -> Goes {
        let users = &USERS[..self.manners.users];
        let user = match () {
            () if self.manners.courier && self.chance.percent(40) => COURIER,
            () if self.manners.sleeper && self.chance.percent(40) => SLEEPER,
            () => *self.chance.one_of(users),
        };
        let charset = *self.chance.one_of(&CHARSETS);
        let schema = if self.chance.percent(70) || self.manners.cached {
            *self.chance.one_of(&SCHEMAS)
        } else {
            ""
        };
        let wrong = self.chance.percent(10);
        let words = format!(
            "COM_CHANGE_USER {user}, schema {schema:?}, collation {charset}, a wrong password: {wrong}"
        );
        self.forget_pending();
        self.judge.tell(&self.who, &words);
        let password = if wrong { "gist" } else { PASSWORD };
        let change = self.client.change_user(user, password, schema, charset);
        match self.rt.timeout(super::PATIENCE, change).await {
            Err(_) => self
                .judge
                .accuse(&self.who, &format!("{words}: never answered")),
            Ok(Err(Broken::Protocol(what))) => {
                self.judge.accuse(&self.who, &format!("{words}: {what}"))
            }
            Ok(Err(Broken::Net(_))) if self.lost => {}
            Ok(Err(Broken::Net(error))) => self.closed(&words, &error),
            Ok(Ok(_)) if self.client.dismissed => self
                .judge
                .excuse(&self.who, &format!("{words}: its session is over")),
            Ok(Ok(reply)) if self.lost => {
                self.judge.accuse(
                    &self.who,
                    &format!("{words}: {reply:?} although the transaction is lost"),
                );
            }
            Ok(Ok(Reply::Err { code: 1045, .. })) if wrong => return Err(Over),
            Ok(Ok(Reply::Ok)) if !wrong => return self.is_another(user, schema, charset).await,
            Ok(Ok(Reply::Err {
                code: 2013 | 9001,
                message,
            })) if user == COURIER => {
                self.judge.excuse(&self.who, &format!("{words}: {message}"));
            }
            Ok(Ok(Reply::Err {
                code: 1049,
                message,
            })) if user == COURIER && self.manners.missing[0] == Some(schema)
                || self.manners.is_nowhere(Some(schema)) =>
            {
                self.judge.tell(&self.who, &format!("{words}: {message}"));
            }
            Ok(Ok(reply)) => self.judge.accuse(&self.who, &format!("{words}: {reply:?}")),
        }
        Err(Over)
    }

    async fn is_another(&mut self, user: &'static str, schema: &str, charset: u16) -> Goes {
        self.judge.was_answered();
        self.judge.hit("a change of user", 1);
        let same = std::mem::replace(&mut self.user, user) == user;
        (self.through, self.drawn) = (user == COURIER, false);
        // MariaDB lets who stays himself keep his role.
        let keeps = self.manners.mariadb && same && !self.through;
        let role = if keeps { self.own.role } else { NO_ROLE };
        self.charset = charset;
        self.renewed = self.rt.now();
        self.forget(Own {
            role,
            ..Own::new(schema, charset)
        });
        (self.told, self.interrupted, self.leaves) = (false, false, false);
        self.client.number = self.client.greeted;
        if self.through {
            self.begin_through().await?;
        }
        self.state(false).await
    }
}
