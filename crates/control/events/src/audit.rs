//! The audit log: a line of JSON for each client that comes, is refused, or leaves. Its files are named and followed as
//! those of the events log are.

use crate::file::{Files, Words};
use bridge::{Audited, utc};
use config::AuditLog;
use serde::Serialize;
use std::path::PathBuf;
use std::rc::Rc;

/// The log in words.
const WORDS: Words = Words {
    log: "the audit log",
    variable: "mysql-auditlog_filename",
    records: "clients",
    dropped: "they are counted here",
};

/// The log, as its thread has it.
pub(crate) struct Audit {
    wish: Option<AuditLog>,
    pub(crate) files: Files,
}

impl Audit {
    pub(crate) fn new(folder: PathBuf, note: Rc<dyn Fn(&str)>) -> Self {
        Self {
            wish: None,
            files: Files::new(folder, note, WORDS),
        }
    }

    pub(crate) const fn wish(&self) -> Option<&AuditLog> {
        self.wish.as_ref()
    }

    /// Writes to files like these from now on, or not at all.
    ///
    /// # Errors
    /// As [`Files::begin`].
    pub(crate) fn work_like(&mut self, wish: Option<AuditLog>, anyway: bool) -> Result<(), String> {
        let Some(new) = &wish else {
            self.files.end();
            self.wish = None;
            return Ok(());
        };
        let begun = self.files.begin(&new.name, false, anyway);
        if begun.is_ok() || anyway {
            self.wish = wish;
        }
        begun
    }

    /// A line more. What comes when there is no log any more is none.
    pub(crate) fn write(&mut self, audited: &Audited) {
        let Some(wish) = &self.wish else { return };
        let is_open = self.files.with_room(wish.bytes_max).is_some();
        let is_written = is_open && self.files.write(&line(audited));
        self.files.lost(u64::from(!is_written));
    }
}

/// Keys by the alphabet, as ProxySQL writes them.
#[derive(Serialize)]
struct Line<'a> {
    client_addr: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    creation_time: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<&'a str>,
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_info: Option<&'a str>,
    proxy_addr: &'a str,
    schemaname: &'a str,
    ssl: bool,
    thread_id: u64,
    time: &'a str,
    timestamp: u64,
    username: &'a str,
}

fn line(audited: &Audited) -> Vec<u8> {
    let time = |us: u64| {
        let mut text = utc(us);
        // Milliseconds.
        text.truncate(text.len() - 3);
        text
    };
    let creation_time = audited.came_us.map(time);
    let duration = audited.came_us.map(|came| {
        let us = audited.at_us.saturating_sub(came);
        format!("{}.{:03}ms", us / 1000, us % 1000)
    });
    let line = Line {
        client_addr: &audited.client,
        creation_time: creation_time.as_deref(),
        duration: duration.as_deref(),
        event: &format!("MySQL_Client_{}", audited.what.name()),
        extra_info: audited.why.as_deref(),
        proxy_addr: &audited.local,
        schemaname: &audited.schema,
        ssl: audited.tls,
        thread_id: audited.session,
        time: &time(audited.at_us),
        timestamp: audited.at_us / 1000,
        username: &audited.user,
    };
    let mut out =
        serde_json::to_vec(&line).expect("texts and numbers are JSON, and memory is written");
    out.push(b'\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use bridge::Auditable;
    use std::cell::RefCell;
    use std::fs;

    fn came() -> Audited {
        Audited {
            what: Auditable::ConnectOk,
            at_us: 1_700_000_000_250_001,
            came_us: None,
            session: 7,
            user: "app\"".into(),
            schema: "shop".into(),
            client: "10.0.0.1:5000".into(),
            local: "10.0.0.9:6033".into(),
            tls: true,
            why: None,
        }
    }

    #[test]
    fn a_line_has_the_keys_of_proxysql() {
        let text = |audited: &Audited| String::from_utf8(line(audited)).unwrap();
        assert_eq!(
            text(&came()),
            concat!(
                r#"{"client_addr":"10.0.0.1:5000","event":"MySQL_Client_Connect_OK","proxy_addr":"10.0.0.9:6033","#,
                r#""schemaname":"shop","ssl":true,"thread_id":7,"time":"2023-11-14 22:13:20.250","timestamp":1700000000250,"#,
                r#""username":"app\""}"#,
                "\n"
            )
        );
        let closed = Audited {
            what: Auditable::Close,
            came_us: Some(1_700_000_000_000_000),
            why: Some("it was killed".into()),
            ..came()
        };
        let closed = text(&closed);
        assert!(
            closed.contains(r#""creation_time":"2023-11-14 22:13:20.000","duration":"250.001ms","event":"MySQL_Client_Close","extra_info":"it was killed""#),
            "{closed}"
        );
    }

    #[test]
    fn a_name_that_cannot_be_is_refused_a_full_file_is_followed_and_what_is_lost_is_told() {
        let folder = std::env::temp_dir().join(format!("millrace-audit-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let notes = Rc::new(RefCell::new(Vec::new()));
        let heard = notes.clone();
        let mut audit = Audit::new(
            folder.clone(),
            Rc::new(move |words: &str| heard.borrow_mut().push(words.to_owned())),
        );
        let of = |name: &str| {
            let (name, bytes_max) = (name.into(), line(&came()).len() as u64 + 1);
            Some(AuditLog { name, bytes_max })
        };
        let refused = audit.work_like(of("nosuch/au"), false).unwrap_err();
        assert!(
            refused.starts_with("mysql-auditlog_filename = 'nosuch/au': the directory"),
            "{refused}"
        );
        assert!(audit.wish().is_none());
        audit.write(&came());
        audit.work_like(of("au"), false).unwrap();
        (0..3).for_each(|_| audit.write(&came()));
        let lines = |number: u32| {
            let text = fs::read_to_string(folder.join(format!("au.{number:08}")));
            text.map_or(0, |text| text.lines().count())
        };
        assert_eq!((lines(1), lines(2)), (2, 1));
        assert!(audit.work_like(of("later/au"), true).is_err());
        audit.write(&came());
        fs::create_dir(folder.join("later")).unwrap();
        audit.files.next().unwrap();
        audit.write(&came());
        assert_eq!(notes.borrow().len(), 2, "{:?}", notes.borrow());
        assert!(
            notes.borrow()[1].contains("1 clients are not in it"),
            "{:?}",
            notes.borrow()
        );
        audit.work_like(None, false).unwrap();
        audit.write(&came());
        fs::remove_dir_all(&folder).unwrap();
    }
}
