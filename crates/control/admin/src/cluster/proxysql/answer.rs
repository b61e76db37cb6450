//! Answering a ProxySQL: it knows a peer by the version, compares checksums, and fetches modules.

use super::facts::{Asked, Dialect, RUNTIME_SERVERS};
use super::form::Speech;
use super::hash;
use crate::cluster::decide::Sum;
use crate::cluster::subjects::{At, SUBJECTS, Subject};
use crate::engine::{Reply, View};
use crate::grid::Grid;
use crate::said::{Asker, Said};
use crate::shared::Shared;
use crate::tables::Module;
use line::Rows;
use std::rc::Rc;

/// Order in which ProxySQL hashes modules into one number.
pub(super) const IN_ALL: [&str; 7] = [
    "admin_variables",
    "mysql_query_rules",
    "mysql_servers",
    "mysql_servers_v2",
    "mysql_users",
    "mysql_variables",
    "proxysql_servers",
];

/// Questions of a ProxySQL.
enum Question {
    Version,
    All,
    Modules,
    Result(At, Asked, usize),
    /// Something that only a ProxySQL says, of another version.
    Strange,
}

impl Shared {
    /// Answers what only ProxySQLs ask; none if it is for the others.
    pub(crate) async fn answer_proxysql(
        &self,
        asker: &Asker,
        text: &str,
    ) -> Result<Option<Reply>, Said> {
        let user = self
            .snapshot
            .borrow()
            .variables
            .admin_cluster_username
            .clone();
        if user.is_empty() || asker.view != View::Admin || *asker.user != *user {
            return Ok(None);
        }
        let Some(speech) = self.spoken() else {
            return Ok(None);
        };
        let text = text.trim().trim_end_matches(';');
        let is_one = self.cluster.proxysql.is_one(asker.id);
        let Some(question) = understood(text, is_one, speech.dialect) else {
            return Ok(None);
        };
        let grid = match question {
            Question::Version => {
                self.cluster.proxysql.meets(asker.id);
                Grid::one("@@version", &speech.version)
            }
            Question::All => {
                self.cluster.seen(asker.id, self.now_s());
                self.settle_forms(&speech).await?;
                let sums = self.sums_for_proxysql(speech.dialect);
                let told = sums.into_iter().filter(|(_, sum)| sum.version > 0);
                let all = hash::of_all(told.map(|(_, sum)| (sum.checksum, sum.version)));
                Grid::one("CHECKSUM", all.to_string())
            }
            Question::Modules => {
                self.settle_forms(&speech).await?;
                modules(&self.sums_for_proxysql(speech.dialect))
            }
            Question::Result(at, asked, nth) => {
                self.settle().await?;
                self.settle_form(at, &speech).await?;
                let form = self.cluster.form(at);
                let rows = form.as_ref().and_then(|form| form.results.get(nth));
                result(&asked, rows)
            }
            Question::Strange => {
                return Err(Said::Sql(format!(
                    "this is no text of ProxySQL {}, whose language is spoken here",
                    speech.version
                )));
            }
        };
        Ok(Some(Reply::Rows(grid)))
    }

    /// The language here with ProxySQLs: as they have said, or the operator.
    fn spoken(&self) -> Option<Speech> {
        let variables = self.snapshot.borrow().variables.clone();
        let version = &*variables.admin_cluster_proxysql_version;
        let known = self.cluster.proxysql.speech();
        if version.is_empty() || known.as_ref().is_some_and(|known| known.version == version) {
            return known;
        }
        Some(Speech {
            version: version.to_owned(),
            dialect: Dialect::of(version)?,
            variables: Rc::default(),
        })
    }

    /// All that ProxySQLs are told of modules, in the order of [`IN_ALL`].
    fn sums_for_proxysql(&self, dialect: Dialect) -> Vec<(&'static str, Sum)> {
        let variables = self.snapshot.borrow().variables.clone();
        let of = |name: &&'static str| {
            let at = SUBJECTS
                .iter()
                .position(|subject| dialect.name(subject.module, subject.name) == *name);
            match at {
                Some(at) => Some((*name, self.cluster.sum_for_proxysql(at, &variables))),
                None if *name == "mysql_servers" => Some((*name, self.placed_sum(&variables))),
                None => None,
            }
        };
        IN_ALL.iter().filter_map(of).collect()
    }

    /// Servers where ProxySQL's monitors would have moved them: here, where operators wrote them.
    fn placed_sum(&self, variables: &config::Variables) -> Sum {
        let servers = |subject: &Subject| subject.module == Module::Servers;
        let Some(at) = SUBJECTS.iter().position(servers) else {
            return Sum::default();
        };
        let rows = self.cluster.form(at);
        let sum = self.cluster.sum_for_proxysql(at, variables);
        let checksum = rows.and_then(|form| form.results.first().map(hash::of_rows));
        Sum {
            checksum: checksum.unwrap_or_default(),
            ..sum
        }
    }
}

/// Question that a text is. `is_one`: the session is a ProxySQL's.
fn understood(text: &str, is_one: bool, dialect: Dialect) -> Option<Question> {
    let is = |other: &str| text.eq_ignore_ascii_case(other);
    if is("SELECT @@version") {
        return Some(Question::Version);
    }
    if is_one && is("SELECT GLOBAL_CHECKSUM()") {
        return Some(Question::All);
    }
    if is_one && is("SELECT * FROM runtime_checksums_values ORDER BY name") {
        return Some(Question::Modules);
    }
    for (at, subject) in SUBJECTS.iter().enumerate() {
        for (nth, asked) in dialect.asked(subject.module).iter().enumerate() {
            if is(&asked.text()) || is_about_variables(text, subject.module) {
                return Some(Question::Result(at, *asked, nth));
            }
        }
        if subject.module == Module::Servers && is(&RUNTIME_SERVERS.text()) {
            return Some(Question::Result(at, RUNTIME_SERVERS, 0));
        }
    }
    let verb = text.split_whitespace().next().unwrap_or_default();
    verb.eq_ignore_ascii_case("PROXY_SELECT")
        .then_some(Question::Strange)
}

/// Versions leave out other names; what is asked for is the same.
fn is_about_variables(text: &str, module: Module) -> bool {
    let Some(prefix) = module.prefix() else {
        return false;
    };
    let head = format!(
        "SELECT * FROM runtime_global_variables WHERE variable_name LIKE '{prefix}%' AND variable_name NOT IN "
    );
    let tail = ") ORDER BY variable_name";
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    text.len() > head.len() + tail.len()
        && part(0..head.len()).eq_ignore_ascii_case(&head)
        && part(text.len() - tail.len()..text.len()).eq_ignore_ascii_case(tail)
}

fn modules(sums: &[(&'static str, Sum)]) -> Grid {
    let mut grid = Grid::new(["name", "version", "epoch", "checksum"]);
    for (name, sum) in sums {
        let text = match sum.version {
            0 => String::new(),
            _ => hash::text(sum.checksum),
        };
        let (version, epoch) = (sum.version.to_string(), sum.epoch.to_string());
        grid.push_row([Some(*name), Some(&version), Some(&epoch), Some(&text)]);
    }
    grid
}

fn result(asked: &Asked, rows: Option<&Rows>) -> Grid {
    let mut grid = Grid::new(asked.columns.iter().copied());
    for cell in rows.into_iter().flatten().flatten() {
        grid.push(cell.as_deref());
    }
    grid
}
