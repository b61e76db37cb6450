//! What a client has set, and the statements that set it.

use super::{Goes, Session};
use crate::client::{Due, Reply};
use crate::mind::{Complaint, NO_ROLE, SCHEMAS, level};

/// Settings of this client, as [`crate::mind::Mind::report`] would say them.
#[derive(Debug, Clone)]
pub(super) struct Own {
    pub(super) schema: String,
    pub(super) names: String,
    pub(super) autocommit: bool,
    pub(super) in_transaction: bool,
    pub(super) isolation: &'static str,
    pub(super) sql_mode: &'static str,
    pub(super) time_zone: String,
    pub(super) access: &'static str,
    pub(super) role: &'static str,
    /// Isolation and access of the next transaction only.
    pub(super) next: Option<(&'static str, &'static str)>,
    /// Isolation and access of the open transaction.
    pub(super) now: (&'static str, &'static str),
}

impl Own {
    pub(super) fn new(schema: &str, charset: u16) -> Self {
        let collation = wire::charset::by_id(charset).expect("one of CHARSETS");
        Self {
            schema: schema.to_owned(),
            names: format!("{}/{}", collation.charset, collation.name),
            autocommit: true,
            in_transaction: false,
            isolation: "REPEATABLE-READ",
            sql_mode: "'default'",
            time_zone: "'default'".to_owned(),
            access: "READ WRITE",
            role: NO_ROLE,
            next: None,
            now: ("", ""),
        }
    }

    /// Returns what the open transaction is, or the next one will be: isolation and access.
    pub(super) fn level(&self) -> (&'static str, &'static str) {
        if self.in_transaction {
            self.now
        } else {
            self.next.unwrap_or((self.isolation, self.access))
        }
    }

    pub(super) fn begin(&mut self) {
        if self.in_transaction {
            self.end();
        }
        self.now = self.level();
        (self.in_transaction, self.next) = (true, None);
    }

    /// START TRANSACTION READ ONLY.
    pub(super) fn begin_to_read(&mut self) {
        self.begin();
        self.now.1 = "READ ONLY";
    }

    pub(super) fn end(&mut self) {
        (self.in_transaction, self.next) = (false, None);
    }

    /// A statement has used tables: it was a transaction, or the first of one.
    pub(super) fn use_tables(&mut self) {
        if !self.in_transaction {
            if self.autocommit {
                self.next = None
            } else {
                self.begin()
            }
        }
    }

    /// Notes that a statement has used tables, if it was answered with rows.
    pub(super) fn use_tables_if(&mut self, reply: &Option<Reply>) {
        if matches!(reply, Some(Reply::Rows(_))) {
            self.use_tables();
        }
    }

    /// Returns what a copy of the client's statements finds: autocommit on, and no transaction.
    pub(super) fn of_copy(&self) -> [String; 10] {
        Self {
            autocommit: true,
            in_transaction: false,
            next: None,
            ..self.clone()
        }
        .report()
    }

    pub(super) fn report(&self) -> [String; 10] {
        [
            self.schema.clone(),
            self.names.clone(),
            u8::from(self.autocommit).to_string(),
            u8::from(self.in_transaction).to_string(),
            self.isolation.to_owned(),
            self.sql_mode.to_owned(),
            self.time_zone.clone(),
            self.access.to_owned(),
            self.role.to_owned(),
            level(self.level().0, self.level().1),
        ]
    }
}

impl Session<'_> {
    pub(super) async fn set(&mut self) -> Goes {
        match self.chance.below(20) {
            _ if self.own.next.is_some() => self.run("BEGIN", true, Own::begin).await,
            16 | 17 => {
                let (words, role) = *self.chance.one_of(&[
                    ("reader", "reader"),
                    ("writer", "writer"),
                    ("NONE", NO_ROLE),
                    ("DEFAULT", NO_ROLE),
                ]);
                self.run(&format!("SET ROLE {words}"), false, |own| own.role = role)
                    .await
            }
            18 | 19 => self.announce().await,
            12 => {
                self.run(
                    "SET SESSION transaction_isolation='READ-COMMITTED'",
                    false,
                    |own| own.isolation = "READ-COMMITTED",
                )
                .await
            }
            13 => {
                self.run(
                    "SET SESSION transaction_isolation = DEFAULT",
                    false,
                    |own| own.isolation = "REPEATABLE-READ",
                )
                .await
            }
            14 => {
                self.run("SET SESSION transaction_read_only=1", false, |own| {
                    own.access = "READ ONLY"
                })
                .await
            }
            15 => {
                self.run("SET transaction_read_only=OFF", false, |own| {
                    own.access = "READ WRITE"
                })
                .await
            }
            0 => {
                self.run("SET sql_mode='ANSI'", false, |own| own.sql_mode = "'ANSI'")
                    .await
            }
            1 => {
                self.run("SET SESSION sql_mode = 'STRICT_ALL_TABLES'", false, |own| {
                    own.sql_mode = "'STRICT_ALL_TABLES'"
                })
                .await
            }
            2 => {
                self.run("SET @@sql_mode=DEFAULT", false, |own| {
                    own.sql_mode = "'default'"
                })
                .await
            }
            3 => {
                self.run("SET time_zone='+01:00'", false, |own| {
                    own.time_zone = "'+01:00'".to_owned()
                })
                .await
            }
            4 => {
                self.run("SET time_zone=DEFAULT", false, |own| {
                    own.time_zone = "'default'".to_owned()
                })
                .await
            }
            5 => {
                let change = |own: &mut Own| {
                    (own.time_zone, own.sql_mode) = ("'+02:00'".to_owned(), "'ANSI'")
                };
                self.run("SET time_zone='+02:00', sql_mode='ANSI'", false, change)
                    .await
            }
            6 => {
                self.run("SET NAMES utf8mb4 COLLATE utf8mb4_bin", false, |own| {
                    own.names = "utf8mb4/utf8mb4_bin".to_owned()
                })
                .await
            }
            7 => {
                self.run("SET NAMES latin1", false, |own| {
                    own.names = "latin1/latin1_swedish_ci".to_owned()
                })
                .await
            }
            8 => {
                let (level, isolation) = *self.chance.one_of(&[
                    ("READ COMMITTED", "READ-COMMITTED"),
                    ("SERIALIZABLE", "SERIALIZABLE"),
                    ("REPEATABLE READ", "REPEATABLE-READ"),
                ]);
                let sql = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
                self.run(&sql, false, |own| own.isolation = isolation).await
            }
            9 => {
                let access = *self.chance.one_of(&["READ ONLY", "READ WRITE"]);
                self.run(&format!("SET SESSION TRANSACTION {access}"), false, |own| {
                    own.access = access
                })
                .await
            }
            10 if self.own.autocommit => {
                self.run("SET autocommit=0", false, |own| own.autocommit = false)
                    .await
            }
            // Only from off to on does it commit.
            _ if self.own.autocommit => self.run("SET autocommit=1", false, |_| ()).await,
            _ => {
                let change = |own: &mut Own| {
                    own.autocommit = true;
                    own.end();
                };
                self.run("SET autocommit=1", true, change).await
            }
        }
    }

    /// SET TRANSACTION: what it says is of the next transaction only, and nothing can be said of
    /// one that is open.
    async fn announce(&mut self) -> Goes {
        let (words, isolation) = *self.chance.one_of(&[
            ("ISOLATION LEVEL READ COMMITTED", Some("READ-COMMITTED")),
            ("ISOLATION LEVEL SERIALIZABLE", Some("SERIALIZABLE")),
            ("READ ONLY", None),
        ]);
        let sql = format!("SET TRANSACTION {words}");
        if self.own.in_transaction {
            match self.query(&sql).await? {
                Some(Reply::Err {
                    code: 1568,
                    message,
                }) => self.twin.fail(&Complaint(1568, message)),
                Some(Reply::Err { code, message }) => self.complained(&sql, code, &message),
                other => self.judge.accuse(&self.who, &format!("{sql}: {other:?}")),
            }
            return Ok(());
        }
        let (before, access) = self.own.level();
        let next = isolation.map_or((before, "READ ONLY"), |isolation| (isolation, access));
        self.run(&sql, false, |own| own.next = Some(next)).await?;
        self.announced |= self.own.next.is_some();
        if self.chance.percent(60) {
            self.run("BEGIN", true, Own::begin).await?;
        }
        let on_master = self.chance.percent(50);
        self.state(on_master).await
    }

    pub(super) async fn use_schema(&mut self) -> Goes {
        let name = *self.chance.one_of(&SCHEMAS);
        if self.chance.percent(50) {
            let mut done = false;
            self.run(&format!("USE {name}"), false, |_| done = true)
                .await?;
            return self.has_used(name, done);
        }
        let mut payload = vec![0x02];
        payload.extend_from_slice(name.as_bytes());
        match self
            .ask(&format!("COM_INIT_DB {name}"), &payload, Due::Text)
            .await?
        {
            Some(Reply::Ok) => return self.has_used(name, true),
            Some(Reply::Err { code, message }) => {
                self.complained(&format!("COM_INIT_DB {name}"), code, &message)
            }
            other => self
                .judge
                .accuse(&self.who, &format!("COM_INIT_DB: {other:?}")),
        }
        Ok(())
    }
}
