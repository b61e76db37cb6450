//! Giving a module to another proxy, and taking one over: whole, with the checksum that was
//! promised, or not at all.

use super::decide::{Sum, Verdict};
use super::proxysql::Form;
use super::{Arrived, At, Peer, Reach, SUBJECTS, Subject, sums, up};
use crate::access;
use crate::build::Built;
use crate::engine::SqlError;
use crate::grid::Grid;
use crate::layers;
use crate::parts::{self, Pieces, is_shared};
use crate::said::{Said, because};
use crate::shared::Shared;
use crate::tables::Module;
use config::{Help, Refusal, Snapshot};
use line::{Failed, Line, Room, Rows};
use rt::Instant;
use std::rc::Rc;

/// Rows are given in pieces of about so many bytes.
const PIECE_BYTES: usize = 64 << 10;

/// A module is coming from there.
pub(super) struct Pulling<'a>(&'a Peer);

impl<'a> Pulling<'a> {
    pub(super) fn begin(peer: &'a Peer, at: At, now: Instant) -> Self {
        peer.known.borrow_mut().pulling = Some((at, now));
        Self(peer)
    }
}

impl Drop for Pulling<'_> {
    fn drop(&mut self) {
        self.0.known.borrow_mut().pulling = None;
    }
}

/// Returns what is in force of a module, in pieces. `pause` is called now and then.
pub(super) fn pieces(module: Module, snapshot: &Snapshot, pause: &dyn Fn()) -> Pieces {
    let mut pieces = Pieces::new();
    let mut count = 0_usize;
    sums::lines(module, snapshot, &mut |table, line| {
        if count.is_multiple_of(64) {
            pause();
        }
        count += 1;
        match pieces.last_mut() {
            Some((of, text)) if of == table && text.len() < PIECE_BYTES => {
                text.push(b'\n');
                text.extend_from_slice(line);
            }
            _ => pieces.push((table.to_owned(), line.to_vec())),
        }
    });
    pieces
}

/// The snapshot in which a module is as another proxy gave it.
pub(super) fn built(module: Module, pieces: &Pieces, now: &Snapshot, help: &dyn Help) -> Built {
    let mut next = Snapshot {
        generation: now.generation + 1,
        ..now.clone()
    };
    let notices = match parts::of(module) {
        Some(part) => part.take(pieces, help)?(&mut next, help)?,
        None => Vec::new(),
    };
    Ok((next, notices))
}

/// The first row of what is given: what it is, in the order of version, epoch and checksum.
fn head(sum: Sum) -> Vec<u8> {
    format!("{} {} {}", sum.version, sum.epoch, sums::text(sum.checksum)).into_bytes()
}

fn read_head(bytes: &[u8]) -> Option<Sum> {
    let mut words = std::str::from_utf8(bytes).ok()?.split(' ');
    let sum = Sum {
        version: words.next()?.parse().ok()?,
        epoch: words.next()?.parse().ok()?,
        checksum: sums::number(words.next()?)?,
    };
    (words.next().is_none() && sum.is_possible()).then_some(sum)
}

/// Takes apart what was given: what it is, and its rows.
fn taken_apart(rows: Rows) -> Option<(Sum, Pieces)> {
    let mut rows = rows.into_iter().map(|row| match <[_; 2]>::try_from(row) {
        Ok([Some(table), Some(text)]) => Some((String::from_utf8(table).ok()?, text)),
        _ => None,
    });
    let (_, first) = rows.next()??;
    Some((read_head(&first)?, rows.collect::<Option<_>>()?))
}

impl Shared {
    /// `PROXYSQL CLUSTER_PULL name`: what is in force of a module, all at one moment.
    pub(crate) async fn give(&self, name: &str) -> Result<Grid, Said> {
        let at = SUBJECTS
            .iter()
            .position(|subject| subject.name.eq_ignore_ascii_case(name));
        let at = at.ok_or_else(|| format!("'{name}' is nothing that proxies share"))?;
        self.settle_one(at).await?;
        let (module, snapshot) = (SUBJECTS[at].module, self.snapshot.borrow().clone());
        let sum = self.cluster.sum(at, &snapshot.variables);
        if sum.version == 0 {
            return Err(Said::Sql(format!(
                "{} is not shared: its admin-checksum variable is false",
                SUBJECTS[at].name
            )));
        }
        let helpers = self.aside.helpers();
        let pieces = self
            .aside
            .done(move || pieces(module, &snapshot, &|| helpers.pause()))
            .await;
        let mut grid = Grid::new(["table", "rows"]);
        grid.push(Some(b""));
        grid.push(Some(&head(sum)));
        for (table, text) in pieces.ok_or("a defect ended it; the log has it")? {
            grid.push(Some(table.as_bytes()));
            grid.push(Some(&text));
        }
        Ok(grid)
    }

    /// Takes a module over from another proxy. Refused, it is as it was before.
    /// `had`: the other's checksum before.
    pub(crate) async fn pull(
        &self,
        peer: &Peer,
        line: &mut Line,
        at: At,
        had: Option<u64>,
    ) -> Result<(), Failed> {
        let Some(subject) = SUBJECTS.get(at) else {
            return Ok(());
        };
        let _until_then = Pulling::begin(peer, at, self.rt.now());
        // What it takes is given back when it is in force: several may come at once, and wait for
        // each other in the end only.
        let mut room = Room::among(&self.cluster.coming);
        let rows = line
            .ask_in(
                &format!("PROXYSQL CLUSTER_PULL {}", subject.name),
                &mut room,
            )
            .await?;
        let (sum, pieces) =
            taken_apart(rows).ok_or_else(|| said("what it gives is no module".into()))?;
        match self.take_over(subject, at, (sum, had), pieces, peer).await {
            Ok(()) => Ok(()),
            Err(Said::Sql(why) | Said::Coded(_, _, why)) => Err(said(why)),
        }
    }

    pub(super) async fn take_over(
        &self,
        subject: &Subject,
        at: At,
        (theirs, had): (Sum, Option<u64>),
        pieces: Pieces,
        peer: &Peer,
    ) -> Result<(), Said> {
        let from = peer.name();
        let _alone = self.alone().await;
        self.settle_one(at).await?;
        let now = self.snapshot.borrow().clone();
        if peer.is_gone() || now.variables.admin_cluster_username.is_empty() {
            // An operator has said so while it came.
            return Ok(());
        }
        if self
            .cluster
            .verdict(at, (theirs, had), u64::MAX, &now.variables)
            != Verdict::Pull
        {
            // Somebody was faster: an operator here, or another proxy.
            return Ok(());
        }
        self.take_in(subject, at, theirs, pieces, &from).await
    }

    /// Takes in what has to have the checksum that was promised; see [`Self::take_in_as`].
    pub(super) async fn take_in(
        &self,
        subject: &Subject,
        at: At,
        theirs: Sum,
        pieces: Pieces,
        from: &str,
    ) -> Result<(), Said> {
        self.take_in_as(subject, at, theirs, pieces, from, None)
            .await
    }

    /// Builds, checks, writes into memory, puts into force and saves what came from elsewhere, as a
    /// LOAD would; nobody else changes what is in force meanwhile. What came in a ProxySQL's form
    /// was compared with its checksum before.
    pub(super) async fn take_in_as(
        &self,
        subject: &Subject,
        at: At,
        mut theirs: Sum,
        pieces: Pieces,
        from: &str,
        form: Option<Rc<Form>>,
    ) -> Result<(), Said> {
        let (module, now) = (subject.module, self.snapshot.borrow().clone());
        let helpers = self.aside.helpers();
        let work = move || -> Result<_, Vec<Refusal>> {
            let (next, notices) = built(module, &pieces, &now, &helpers)?;
            let checksum = sums::checksum(module, &next, &|| helpers.pause());
            Ok((next, notices, checksum))
        };
        let (next, notices, checksum) = self
            .aside
            .done(work)
            .await
            .ok_or("a defect ended it; the log has it")?
            .map_err(|refused| because(module.words(), &refused))?;
        if form.is_some() {
            theirs.checksum = checksum;
        }
        if checksum != theirs.checksum {
            let (came, said) = (sums::text(checksum), sums::text(theirs.checksum));
            return Err(Said::Sql(format!(
                "what came has the checksum {came} and not {said}"
            )));
        }
        if module == Module::AdminVariables {
            access::check_at(&next.variables, &self.open_at)
                .map_err(|refused| because(module.words(), &refused))?;
        }
        let events = self.events_after(module, &next).await?;
        let waiting = next
            .variables
            .waiting_for_a_start(&self.snapshot.borrow().variables);
        for notice in notices
            .iter()
            .map(ToString::to_string)
            .chain(events.notice)
            .chain(waiting)
        {
            (self.hooks.log)(&format!("cluster: {}: {notice}", subject.name));
        }
        let share = match form.is_some() {
            // What a ProxySQL has loaded is for the whole fleet, if there is one.
            true => self.share_load(module, &next, Reach::All).await?,
            false => None,
        };
        self.keep(subject, &next)?;
        self.cluster.was_taken(at, self.rt.now(), from);
        let generation = next.generation;
        let arrived = Arrived { sum: theirs, form };
        let entered = self.enter(module, next, Some(arrived), events.ends).await;
        if share.is_some() {
            self.is_shared_now(share.as_ref());
        }
        if self.snapshot.borrow().generation != generation {
            // It was not even begun to tell the cores.
            return entered;
        }
        up(&self.cluster.tally.taken);
        let Sum { version, epoch, .. } = theirs;
        let words = format!(
            "cluster: {} was taken over from {from}, version {version} of epoch {epoch}",
            subject.name
        );
        (self.hooks.log)(&words);
        if (subject.saves)(&self.snapshot.borrow().variables)
            && let Err(SqlError(why)) = self.save_in_force(module)
        {
            (self.hooks.log)(&format!(
                "cluster: {} is in force and not saved: {why}",
                subject.name
            ));
        }
        if let Err(Said::Sql(late) | Said::Coded(_, _, late)) = entered {
            (self.hooks.log)(&format!("cluster: {}: {late}", subject.name));
        }
        Ok(())
    }

    /// To disk as it is in force, and nothing that an operator has only tried in memory.
    fn save_in_force(&self, module: Module) -> Result<(), SqlError> {
        let mark = self.cluster.mark(module);
        let mark = mark
            .as_ref()
            .map(|(name, version, epoch, checksum)| (*name, *version, *epoch, checksum.as_str()));
        layers::in_force_to_disk(
            &self.engine.borrow(),
            module,
            &self.snapshot.borrow(),
            is_shared,
            mark,
        )
    }

    /// In memory it is as it will be in force: whole, or as before.
    fn keep(&self, subject: &Subject, next: &Snapshot) -> Result<(), Said> {
        let kept = self
            .engine
            .borrow()
            .transaction(|conn| layers::keep(conn, subject.module, next, is_shared));
        Ok(kept?)
    }
}

/// Says that what another proxy gives cannot be taken.
fn said(words: String) -> Failed {
    Failed::Said { code: 0, words }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::VARIABLES;
    use config::{FastRoutingRow, RuleRow, Rules, Variables};
    use std::sync::Arc;

    fn many() -> Snapshot {
        let fast = (0..5000).map(|i| FastRoutingRow {
            username: "u".into(),
            schemaname: format!("shard_{i}"),
            destination_hostgroup: i % 7,
            ..FastRoutingRow::default()
        });
        let rule = RuleRow {
            rule_id: 3,
            active: 1,
            match_digest: Some("^SELECT".into()),
            ..RuleRow::default()
        };
        let rules = Rules::build([rule], fast, &Variables::default()).unwrap();
        Snapshot {
            rules: Arc::new(rules),
            ..Snapshot::default()
        }
    }

    #[test]
    fn what_does_not_fit_is_not_told_with_its_value() {
        let text = br#"["u","s3cret","s3cret","s3cret"]"#.to_vec();
        let wrong = vec![
            ("mysql_users".to_owned(), text),
            (VARIABLES.to_owned(), br#"["admin-x",["s3cret"]]"#.to_vec()),
        ];
        let said = [Module::Users, Module::AdminVariables]
            .map(|module| built(module, &wrong, &Snapshot::default(), &config::Alone))
            .into_iter()
            .flat_map(|built| built.map(drop).unwrap_err());
        let words: Vec<_> = said.map(|refused| refused.to_string()).collect();
        assert!(
            words.len() == 2
                && words
                    .iter()
                    .all(|words| words.contains("number 1") && !words.contains("s3cret")),
            "{words:?}"
        );
    }

    #[test]
    fn what_is_given_is_built_again_with_the_same_checksum() {
        let (given, module) = (many(), Module::Rules);
        let of = |snapshot: &Snapshot| sums::checksum(module, snapshot, &|| ());
        let whole = pieces(module, &given, &|| ());
        assert!(whole.len() > 2, "in pieces");
        let (next, _) = built(module, &whole, &Snapshot::default(), &config::Alone).unwrap();
        assert_eq!((of(&next), next.generation), (of(&given), 1));
        assert!(
            next.rules
                .fast()
                .rows()
                .any(|row| row.schemaname == "shard_4" && row.destination_hostgroup == 4)
        );
        // A part of it has another one, and what is no row is refused.
        let part = whole[..whole.len() - 1].to_vec();
        let (next, _) = built(module, &part, &Snapshot::default(), &config::Alone).unwrap();
        assert_ne!(of(&next), of(&given));
        let mut broken = whole;
        broken.last_mut().unwrap().1.pop();
        let refused = built(module, &broken, &Snapshot::default(), &config::Alone).unwrap_err();
        assert!(
            refused[0].to_string().starts_with(
                "mysql_query_rules_fast_routing: has no row of this version as number"
            ),
            "{refused:?}"
        );
    }

    #[test]
    fn a_head_is_read_again_and_nothing_else_is_one() {
        let sum = Sum {
            version: 3,
            epoch: 1_700_000_000,
            checksum: 171,
        };
        assert_eq!(read_head(&head(sum)), Some(sum));
        for wrong in [
            "",
            "3 4",
            "3 4 5",
            "3 4 0xZ",
            "3 4 0x5 6",
            "-1 4 0x5",
            "3 18446744073709551615 0x5",
        ] {
            assert_eq!(read_head(wrong.as_bytes()), None, "{wrong}");
        }
        let cell = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(taken_apart(vec![]), None);
        assert_eq!(taken_apart(vec![vec![cell("")]]), None);
        assert_eq!(
            taken_apart(vec![vec![cell(""), cell("1 2 0x3")], vec![cell("t"), None]]),
            None
        );
        let fine = taken_apart(vec![
            vec![cell(""), cell("1 2 0x3")],
            vec![cell("t"), cell("[]")],
        ]);
        assert_eq!(
            fine,
            Some((
                Sum {
                    version: 1,
                    epoch: 2,
                    checksum: 3
                },
                vec![("t".into(), b"[]".to_vec())]
            ))
        );
    }

    #[test]
    fn variables_of_others_do_not_say_where_this_one_listens() {
        let (theirs, _) = Variables::build([
            ("mysql-interfaces", "127.0.0.1:1"),
            ("mysql-multiplexing", "false"),
        ])
        .unwrap();
        let theirs = Snapshot {
            variables: Arc::new(theirs),
            ..Snapshot::default()
        };
        let mut given = pieces(Module::MysqlVariables, &theirs, &|| ());
        given.push((
            VARIABLES.into(),
            br#"["mysql-interfaces","127.0.0.1:1"]"#.to_vec(),
        ));
        given.push((VARIABLES.into(), br#"["admin-read_only","true"]"#.to_vec()));
        let (next, _) = built(
            Module::MysqlVariables,
            &given,
            &Snapshot::default(),
            &config::Alone,
        )
        .unwrap();
        assert!(!next.variables.mysql_multiplexing && !next.variables.admin_read_only);
        assert_eq!(
            next.variables.mysql_interfaces,
            Variables::default().mysql_interfaces
        );
        assert_eq!(
            sums::checksum(Module::MysqlVariables, &next, &|| ()),
            sums::checksum(Module::MysqlVariables, &theirs, &|| ())
        );
    }
}
