//! Desk of the admin thread: other threads of the process ask here for people who look at a page.

use crate::access;
use crate::engine::{Reply, View};
use crate::grid::Grid;
use crate::said::{Asker, Said};
use crate::see::beside;
use crate::shared::Shared;
use bridge::{Ask, Pass, Table, ToAdmin, Totals, Unanswered};
use door::Entry;
use net::Credential;
use rt::Address;
use rt::mailbox::Receiver;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// Rows of an answer at most.
const ROWS_MAX: usize = 5000;
/// Bytes of an answer at most.
const BYTES_MAX: usize = 8 << 20;

/// Words for a wrong name and a wrong password alike.
const WRONG: &str =
    "this user with this password is none of admin-admin_credentials and admin-stats_credentials";

/// Answers letters of other threads until nobody can write any more.
pub(crate) async fn serve(shared: Rc<Shared>, letters: Receiver<ToAdmin>) {
    let desk = Rc::new(Desk {
        shared,
        seals: RandomState::new(),
    });
    while let Some(letter) = letters.recv().await {
        match letter {
            ToAdmin::Enter {
                user,
                password,
                from,
                reply,
            } => reply(desk.enter(&user, &password, from)),
            ToAdmin::Ask { pass, sql, reply } => {
                let (here, rt) = (desk.clone(), desk.shared.rt.clone());
                rt.spawn(async move { reply(here.answer(pass, &sql).await) });
            }
            ToAdmin::Count { of, reply } => {
                let (here, rt) = (desk.clone(), desk.shared.rt.clone());
                rt.spawn(async move { reply(here.count(of).await) });
            }
            ToAdmin::HandOver { begins, reply } => {
                let (here, rt) = (desk.clone(), desk.shared.rt.clone());
                rt.spawn(async move { here.hand_over(begins, reply).await });
            }
        }
    }
}

struct Desk {
    shared: Rc<Shared>,
    seals: RandomState,
}

impl Desk {
    fn enter(&self, user: &str, password: &str, from: IpAddr) -> Result<Pass, String> {
        let wanted = self.seal(user, from)?;
        // Hashes are compared: how long that takes says nothing of the password.
        match wanted.filter(|wanted| *wanted == self.seals.hash_one((user, password))) {
            Some(seal) => Ok(Pass {
                user: user.into(),
                from,
                may_act: self.view(user) == View::Admin,
                seal,
            }),
            None => Err(WRONG.to_owned()),
        }
    }

    /// Hash of the credentials that `user` has now, if he has some; or why he may not come at all.
    fn seal(&self, user: &str, from: IpAddr) -> Result<Option<u64>, String> {
        let peer = Address::Tcp(SocketAddr::new(from, 0));
        let password = match access::entry(&self.shared.snapshot.borrow().variables, user, &peer) {
            Entry::Nobody => return Ok(None),
            Entry::Refuse(refused) => return Err(refused.message),
            Entry::User(credentials) => match credentials.into_iter().next() {
                Some(Credential::Clear(password)) => password,
                // A password that is empty lets nobody see a page.
                _ => return Ok(None),
            },
        };
        Ok(Some(self.seals.hash_one((user, &*password))))
    }

    fn view(&self, user: &str) -> View {
        access::view(&self.shared.snapshot.borrow().variables, user)
    }

    async fn answer(&self, pass: Option<Pass>, sql: &str) -> Result<Table, Unanswered> {
        let asker = match pass {
            None => asker("millrace", "localhost".into(), View::Stats),
            Some(pass) => {
                let view = self.view(&pass.user);
                let is_good = self.seal(&pass.user, pass.from) == Ok(Some(pass.seal));
                if !is_good || pass.may_act != (view == View::Admin) {
                    return Err(Unanswered::Out);
                }
                asker(&pass.user, pass.from.to_string(), view)
            }
        };
        let answered = self.shared.answer(&asker, sql, &[]).await;
        let answered = answered.map_err(|said| match said {
            Said::Sql(words) | Said::Coded(_, _, words) => Unanswered::Said(words),
        })?;
        let table = match &answered.reply {
            Reply::Done { info, .. } => done(info),
            Reply::Rows(grid) => table(grid)?,
        };
        answered.delivered();
        Ok(table)
    }

    /// Totals for the process that has taken over.
    async fn count(&self, of: &[Ask]) -> Totals {
        let mut totals = Totals::default();
        for what in of {
            if let Ok(mut report) = self.shared.cores.ask(*what).await {
                report.keep_totals();
                totals.reports.push(report);
            }
        }
        totals.monitor = beside::done(&self.shared).await.ok();
        totals
    }

    /// Another process begins to take over, or has failed to. Answers when what is in force is kept
    /// for it.
    async fn hand_over(&self, begins: bool, reply: bridge::Reply<()>) {
        let shared = &self.shared;
        shared.stop_moves(begins).await;
        let _alone = shared.alone().await;
        let mut engine = shared.engine.borrow_mut();
        if begins && !shared.handed_over.get() {
            shared.was_read_only.set(engine.is_read_only());
        }
        shared.handed_over.set(begins);
        drop(engine.set_read_only(begins || shared.was_read_only.get()));
        drop(engine);
        shared.keeper.settle(reply);
    }
}

fn asker(user: &str, host: String, view: View) -> Asker {
    Asker {
        id: 0,
        user: user.to_owned(),
        host,
        port: 0,
        view,
    }
}

/// Words about a command that was carried out, if there are some.
fn done(info: &str) -> Table {
    let rows = (!info.is_empty()).then(|| vec![Some(info.into())]);
    Table {
        names: vec!["info".into()],
        rows: rows.into_iter().collect(),
    }
}

fn table(grid: &Grid) -> Result<Table, Unanswered> {
    if grid.len() > ROWS_MAX || grid.bytes_held() > BYTES_MAX {
        return Err(Unanswered::Said(format!(
            "the answer has more than {ROWS_MAX} rows or {BYTES_MAX} bytes: ask on the admin port"
        )));
    }
    let text = |cell: &[u8]| String::from_utf8_lossy(cell).into();
    let rows = grid.rows();
    Ok(Table {
        names: grid.names.iter().map(|name| name.as_str().into()).collect(),
        rows: rows
            .map(|row| row.into_iter().map(|cell| cell.map(text)).collect())
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::Options;
    use crate::testing;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn a_pass_is_good_for_as_long_as_its_credentials_are() {
        testing::with(Options::default(), |bench| async move {
            let desk = Desk {
                shared: bench.shared.clone(),
                seals: RandomState::new(),
            };
            assert_eq!(desk.enter("admin", "wrong", HERE), Err(WRONG.to_owned()));
            assert_eq!(desk.enter("nobody", "", HERE), Err(WRONG.to_owned()));
            let far = desk.enter("admin", "admin", "192.0.2.1".parse().unwrap());
            assert!(far.unwrap_err().contains("only connect locally"));
            let admin = desk.enter("admin", "admin", HERE).unwrap();
            let stats = desk.enter("stats", "stats", HERE).unwrap();
            assert_eq!((admin.may_act, stats.may_act), (true, false));
            let users = "SELECT count(*) FROM mysql_users";
            let said = desk.answer(Some(admin.clone()), users).await.unwrap();
            assert_eq!(said.rows, [[Some("0".into())]]);
            assert!(desk.answer(Some(stats.clone()), users).await.is_err());
            let forged = Pass {
                seal: 1,
                ..admin.clone()
            };
            assert_eq!(desk.answer(Some(forged), users).await, Err(Unanswered::Out));
            let raised = Pass {
                may_act: true,
                ..stats
            };
            assert_eq!(desk.answer(Some(raised), users).await, Err(Unanswered::Out));
            let change = "SET admin-admin_credentials = 'admin:other'";
            for sql in [change, "LOAD ADMIN VARIABLES TO RUNTIME"] {
                desk.answer(Some(admin.clone()), sql).await.unwrap();
            }
            assert_eq!(desk.answer(Some(admin), users).await, Err(Unanswered::Out));
        });
    }
}
