//! Asking a ProxySQL: what it is, what it has, and what was loaded there.

use super::facts::Dialect;
use super::form::{self, Form, Speech};
use super::hash;
use crate::cluster::decide::{Sum, Verdict};
use crate::cluster::peer::{Met, Peer};
use crate::cluster::subjects::{At, SUBJECTS};
use crate::cluster::take::Pulling;
use crate::said::Said;
use crate::shared::Shared;
use config::{Help as _, Variables};
use line::{Failed, Line, Room, Rows, words_of_another};
use std::rc::Rc;

/// A ProxySQL of 2.6 or later that takes over what monitors have moved has another value in this
/// variable.
const ALGORITHM: &str = "admin-cluster_mysql_servers_sync_algorithm";
const AS_LOADED: &str = "2";

impl Shared {
    /// Finds out whether it is a ProxySQL that can be followed, and learns what it has.
    pub(in crate::cluster) async fn join_proxysql(
        &self,
        peer: &Peer,
        line: &mut Line,
        variables: &Variables,
    ) -> Result<(), String> {
        let words = |failed: Failed| failed.to_string();
        let rows = line.ask("SELECT @@version").await.map_err(words)?;
        let version = match rows.first().and_then(|row| row.first()) {
            Some(Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            _ => return Err("it does not say its @@version".to_owned()),
        };
        let told = words_of_another(&version);
        let Some(dialect) = Dialect::of(&version) else {
            return Err(format!(
                "its @@version is {told}: Millraces of this version are followed, and ProxySQLs from 2.5 to 3.0"
            ));
        };
        let wanted = &*variables.admin_cluster_proxysql_version;
        if !wanted.is_empty() && wanted != version {
            return Err(format!(
                "its @@version is {told}, and admin-cluster_proxysql_version is {wanted}"
            ));
        }
        let known = self.cluster.proxysql.speech();
        let is_other = known.as_ref().is_some_and(|known| known.version != version);
        if let (true, Some(known)) = (is_other, &known)
            && let Some(other) = self.speaking(peer)
        {
            return Err(format!(
                "its @@version is {told}, and that of {other} is {}: ProxySQLs of two versions do not follow each other",
                words_of_another(&known.version)
            ));
        }
        let all = line
            .ask("SELECT variable_name, variable_value FROM runtime_global_variables ORDER BY variable_name")
            .await
            .map_err(words)?;
        let variables = Rc::new(form::pairs(&all));
        let is_new = known.is_none_or(|known| is_other || known.variables.is_empty());
        *peer.algorithm.borrow_mut() = variables.get(ALGORITHM).cloned();
        if is_new {
            self.cluster.proxysql.learn(Speech {
                version,
                dialect,
                variables,
            });
        }
        peer.speaks_proxysql.set(true);
        Ok(())
    }

    /// Another ProxySQL that answers.
    fn speaking(&self, peer: &Peer) -> Option<String> {
        let peers = self.cluster.peers.borrow();
        peers
            .iter()
            .filter(|other| !std::ptr::eq(&***other, peer) && other.speaks_proxysql.get())
            .find(|other| other.met() == Met::Another && other.answers())
            .map(|other| other.name())
    }

    /// Makes what a look at this proxy compares with.
    pub(in crate::cluster) async fn settle_for(&self, peer: &Peer) -> Result<(), Said> {
        match self
            .cluster
            .proxysql
            .speech()
            .filter(|_| peer.speaks_proxysql.get())
        {
            Some(speech) => self.settle_forms(&speech).await,
            None => self.settle().await,
        }
    }

    /// Notes whether this ProxySQL takes over what monitors have moved.
    pub(in crate::cluster) async fn measure_proxysql(
        &self,
        peer: &Peer,
        line: &mut Line,
    ) -> Result<(), Failed> {
        let sql = format!(
            "SELECT variable_value FROM runtime_global_variables WHERE variable_name = '{ALGORITHM}'"
        );
        let rows = line.ask(&sql).await?;
        let value = rows
            .first()
            .and_then(|row| row.first()?.as_deref())
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        *peer.algorithm.borrow_mut() = value;
        Ok(())
    }

    /// Tells which ProxySQLs mix what operators load with what monitors move.
    pub(crate) fn told_algorithm(&self) -> Option<String> {
        let peers = self.cluster.peers.borrow();
        let mixes = |peer: &&Rc<Peer>| {
            let algorithm = peer.algorithm.borrow();
            peer.speaks_proxysql.get()
                && algorithm.as_deref().is_some_and(|value| value != AS_LOADED)
        };
        let names: Vec<_> = peers.iter().filter(mixes).map(|peer| peer.name()).collect();
        (!names.is_empty()).then(|| {
            format!(
                "{}: set {ALGORITHM} to {AS_LOADED} there, or it takes what monitors have moved for what was loaded",
                names.join(", ")
            )
        })
    }

    /// Takes a module over from a ProxySQL. Refused, it is as it was before.
    /// `had`: its checksum there before.
    pub(in crate::cluster) async fn pull_from_proxysql(
        &self,
        peer: &Peer,
        line: &mut Line,
        at: At,
        had: Option<u64>,
    ) -> Result<(), Failed> {
        let (Some(subject), Some(speech)) = (SUBJECTS.get(at), self.cluster.proxysql.speech())
        else {
            return Ok(());
        };
        let _until_then = Pulling::begin(peer, at, self.rt.now());
        let theirs = peer.seen(at).sum;
        let mut room = Room::among(&self.cluster.coming);
        let mut results = Vec::new();
        for asked in speech.dialect.asked(subject.module) {
            let rows = line.ask_in(&asked.text(), &mut room).await?;
            is_whole(&rows, asked.columns.len()).map_err(|words| said(asked.table, &words))?;
            results.push(rows);
        }
        let module = subject.module;
        let came = self.aside.done(move || Form::of(module, results)).await;
        let came = came.ok_or_else(|| said(subject.name, "a defect ended it; the log has it"))?;
        if came.checksum != theirs.checksum {
            let (came, announced) = (hash::text(came.checksum), hash::text(theirs.checksum));
            return Err(said(
                subject.name,
                &format!("what came has the checksum {came}, and {announced} was announced"),
            ));
        }
        match self.take_form(peer, at, (theirs, had), came).await {
            Ok(()) => Ok(()),
            Err(Said::Sql(why) | Said::Coded(_, _, why)) => Err(said("", &why)),
        }
    }

    pub(super) async fn take_form(
        &self,
        peer: &Peer,
        at: At,
        seen: (Sum, Option<u64>),
        came: Form,
    ) -> Result<(), Said> {
        let (Some(subject), Some(speech)) = (SUBJECTS.get(at), self.cluster.proxysql.speech())
        else {
            return Ok(());
        };
        let _alone = self.alone().await;
        self.settle_for(peer).await?;
        let now = self.snapshot.borrow().clone();
        let is_off = now.variables.admin_cluster_username.is_empty();
        let verdict = self
            .cluster
            .verdict_on(peer, at, seen, u64::MAX, &now.variables);
        if peer.is_gone() || is_off || verdict != Verdict::Pull {
            // An operator has said so while it came, or another proxy was faster.
            return Ok(());
        }
        let (module, dialect, helpers) = (subject.module, speech.dialect, self.aside.helpers());
        let work = move || {
            let pieces = form::pieces(module, dialect, &came.results, &now, &|| helpers.pause());
            (pieces, came)
        };
        let (pieces, came) = self
            .aside
            .done(work)
            .await
            .ok_or("a defect ended it; the log has it")?;
        let variables = came.results.first().filter(|_| module.prefix().is_some());
        let values = variables.map(form::pairs).unwrap_or_default();
        self.take_in_as(
            subject,
            at,
            seen.0,
            pieces,
            &peer.name(),
            Some(Rc::new(came)),
        )
        .await?;
        if !values.is_empty() {
            self.told_variables(speech, values);
        }
        Ok(())
    }

    /// Values of variables that mean nothing here are those that came last.
    fn told_variables(&self, speech: Speech, values: std::collections::BTreeMap<String, String>) {
        let mut variables = (*speech.variables).clone();
        variables.extend(values);
        self.cluster.proxysql.learn(Speech {
            variables: Rc::new(variables),
            ..speech
        });
    }
}

/// Whether a result has all of its columns.
fn is_whole(rows: &Rows, columns: usize) -> Result<(), String> {
    match rows.iter().find(|row| row.len() != columns) {
        None => Ok(()),
        Some(row) => Err(format!(
            "it gives {} columns, and {columns} belong there",
            row.len()
        )),
    }
}

/// Says that what a ProxySQL gives cannot be taken.
fn said(of: &str, words: &str) -> Failed {
    let words = match of {
        "" => words.to_owned(),
        _ => format!("{of}: {words}"),
    };
    Failed::Said { code: 0, words }
}
