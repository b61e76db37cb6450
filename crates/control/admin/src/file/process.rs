//! Settings of a file for the process itself: where things are, and what is done when it fails.

use super::names::{self, GROUPS, lists};
use super::tree::{Setting, WORDS, about};
use config::Refusal;

/// Settings of the process itself. What is `false` is accepted and without effect.
pub const KNOWN: &[(&str, bool)] = &[
    ("datadir", true),
    ("errorlog", true),
    ("pidfile", true),
    ("uuid", false),
    ("restart_on_missing_heartbeats", true),
    ("execute_on_exit_failure", true),
    ("cluster_sync_interfaces", false),
    ("sqlite3_plugin", false),
    ("web_interface_plugin", false),
    ("ldap_auth_plugin", false),
];

/// Settings of a file for the process itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Where the databases are.
    pub datadir: Option<String>,
    /// Where the log goes.
    pub errorlog: Option<String>,
    /// Where the process id is written.
    pub pidfile: Option<String>,
    /// Program that is run when the process has failed.
    pub on_failure: Option<String>,
    /// Heartbeats in a row that a core may miss; 0 for any number.
    pub missing_heartbeats_max: u64,
    /// Settings that were left out or have no effect.
    pub warnings: Vec<Refusal>,
}

impl Settings {
    pub(super) fn of(file: &[Setting]) -> Result<Self, Vec<Refusal>> {
        let mut settings = Self::default();
        let mut refused = Vec::new();
        let rows: Vec<_> = lists()
            .map(|(name, ..)| name)
            .chain(GROUPS.iter().map(|(name, _)| *name))
            .collect();
        for setting in file {
            if rows.contains(&setting.name.as_str()) {
                continue;
            }
            let known = KNOWN.iter().find(|(name, _)| *name == setting.name);
            match (known, setting.value.one(WORDS)) {
                (Some((_, false)), _) => {
                    let words = "is accepted, and has no effect here";
                    settings.warnings.push(about(setting, words));
                }
                (Some((name, true)), Some(text)) => match *name {
                    "datadir" => settings.datadir = Some(text.to_owned()),
                    "errorlog" => settings.errorlog = Some(text.to_owned()),
                    "execute_on_exit_failure" => settings.on_failure = Some(text.to_owned()),
                    "restart_on_missing_heartbeats" => match text.parse() {
                        Ok(max) => settings.missing_heartbeats_max = max,
                        Err(_) => refused.push(about(setting, "must be a number from 0")),
                    },
                    _ => settings.pidfile = Some(text.to_owned()),
                },
                (Some(_), _) => refused.push(about(setting, "must be one value")),
                (None, _) => {
                    let known = KNOWN.iter().map(|(name, _)| *name).chain(rows.clone());
                    let words = names::unknown(&setting.name, "setting of this version", known);
                    settings.warnings.push(about(setting, &words));
                }
            }
        }
        if refused.is_empty() {
            Ok(settings)
        } else {
            Err(refused)
        }
    }
}
