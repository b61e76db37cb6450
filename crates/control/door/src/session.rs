//! One client's life behind a door: the login, then one command after another.

use crate::conn::{Broken, Conn};
use crate::login::{self, OFFERED, Outcome};
use crate::statements::{Bounds, Statements};
use crate::{Answer, Done, Door, Host, Out, Refused, Who};
use rt::{Rt, Socket};
use std::rc::Rc;
use std::time::Duration;
use wire::caps::{self, Caps};
use wire::command::{Command, SET_OPTION_MULTI_STATEMENTS_ON};
use wire::errors;
use wire::handshake::ChangeUser;

pub(crate) async fn live<H: Host>(
    door: &Rc<Door<H>>,
    socket: Socket,
    id: u32,
    rt: &Rt,
) -> Result<(), Broken> {
    let mut conn = Conn::new(
        socket,
        rt.clone(),
        Duration::from_millis(door.limits.read_ms_max),
    );
    let in_time = rt.timeout(
        Duration::from_millis(door.limits.login_ms_max),
        login::greet(&*door.host, &mut conn, id, rt),
    );
    let Ok(Outcome::In(login)) = in_time.await.unwrap_or(Err(Broken::Gone)) else {
        return Ok(());
    };
    let caps = login.caps;
    let who = Who {
        id,
        user: login.user,
        schema: login.database,
        peer: conn.peer(),
        caps,
    };
    let Some(answer) = begin(door, who, &mut conn).await? else {
        return Ok(());
    };
    let mut session = Session {
        door: door.clone(),
        answer,
        caps,
        id,
        statements: Statements::default(),
    };
    loop {
        let max = door
            .limits
            .packet_bytes_max
            .min(session.answer.command_bytes_max());
        let next = rt::select(session.answer.ended(), conn.payload(max));
        let rt::Either::Right(next) = next.await else {
            return Ok(());
        };
        let payload = match next {
            Ok(payload) => payload,
            Err(Broken::TooLarge) => {
                conn.skip().await?;
                let words = format!("Got a packet bigger than {max} bytes");
                Out::new(&mut conn, caps, false)
                    .err(&Refused::new(errors::PACKET_TOO_LARGE, words))
                    .await?;
                continue;
            }
            Err(broken) => return Err(broken),
        };
        if !session.command(&payload, &mut conn, rt).await? {
            return Ok(());
        }
        // So that one who sends without pause does not keep the others from their turn.
        rt.yield_now().await;
    }
}

/// Makes the answerer and lets the client in, or tells it why not.
async fn begin<H: Host>(
    door: &Rc<Door<H>>,
    who: Who,
    conn: &mut Conn,
) -> Result<Option<H::Session>, Broken> {
    let caps = who.caps;
    match door.host.session(who) {
        Ok(answer) => {
            let status = answer.status();
            Out::new(conn, caps, false)
                .ok(&Done::default(), status)
                .await?;
            Ok(Some(answer))
        }
        Err(refused) => {
            Out::new(conn, caps, false).err(&refused).await?;
            Ok(None)
        }
    }
}

struct Session<H: Host> {
    door: Rc<Door<H>>,
    answer: H::Session,
    caps: Caps,
    id: u32,
    statements: Statements,
}

impl<H: Host> Session<H> {
    /// Does one command; false if it was the last.
    async fn command(&mut self, payload: &[u8], conn: &mut Conn, rt: &Rt) -> Result<bool, Broken> {
        let command = match Command::read(payload, self.caps) {
            Ok(command) => command,
            Err(malformed) => {
                Out::new(conn, self.caps, false)
                    .err(&Refused::new(
                        errors::UNKNOWN_COMMAND,
                        malformed.to_string(),
                    ))
                    .await?;
                return Ok(false);
            }
        };
        let mut out = Out::new(conn, self.caps, false);
        match command {
            Command::Quit => return Ok(false),
            Command::Ping => self.ping(out).await?,
            Command::Query(query) => self.query(query.sql, out).await?,
            Command::InitDb(schema) => {
                let outcome = self.answer.use_schema(&String::from_utf8_lossy(schema));
                self.done(outcome, out).await?;
            }
            Command::FieldList { table, .. } => {
                match self.answer.fields(&String::from_utf8_lossy(table)) {
                    Ok(columns) => out.fields(&columns, self.answer.status()).await?,
                    Err(refused) => out.err(&refused).await?,
                }
            }
            Command::Statistics => out.line(&self.answer.statistics()).await?,
            Command::SetOption(option) => {
                if option == SET_OPTION_MULTI_STATEMENTS_ON {
                    self.caps |= caps::MULTI_STATEMENTS;
                } else {
                    self.caps &= !caps::MULTI_STATEMENTS;
                }
                // Its answer has always been an EOF.
                out.end(self.answer.status()).await?;
            }
            Command::ResetConnection => {
                self.answer.reset();
                self.statements = Statements::default();
                self.done(Ok(()), out).await?;
            }
            Command::ChangeUser(body) => return self.change_user(body, conn, rt).await,
            Command::Prepare(sql) => self.prepare(sql, out).await?,
            Command::Execute(execute) => {
                self.execute(&execute, Out::new(conn, self.caps, true))
                    .await?
            }
            Command::SendLongData { id, param, data } => {
                self.statements.keep_long(id, param, data, self.bounds());
            }
            Command::Close(id) => self.statements.close(id),
            Command::Reset(id) => {
                let outcome = self.statements.reset(id);
                self.done(outcome, out).await?;
            }
            Command::ProcessKill(id) => {
                let outcome = self.answer.kill(id);
                self.done(outcome, out).await?;
            }
            Command::Fetch { .. }
            | Command::Debug
            | Command::BulkExecute { .. }
            | Command::BinlogDump(_)
            | Command::BinlogDumpGtid(_)
            | Command::RegisterSlave(_)
            | Command::Unknown(_) => {
                let name = wire::command::name(payload.first().copied().unwrap_or_default());
                out.err(&Refused::new(
                    errors::UNKNOWN_COMMAND,
                    format!("This port does not know the command '{name}'"),
                ))
                .await?;
            }
        }
        Ok(true)
    }

    async fn done(&mut self, outcome: Result<(), Refused>, mut out: Out<'_>) -> Result<(), Broken> {
        match outcome {
            Ok(()) => out.ok(&Done::default(), self.answer.status()).await?,
            Err(refused) => out.err(&refused).await?,
        }
        Ok(())
    }

    async fn query(&mut self, sql: &[u8], mut out: Out<'_>) -> Result<(), Broken> {
        if !caps::has(self.caps, caps::MULTI_STATEMENTS) {
            self.answer.query(sql, &mut out).await?;
            return Ok(());
        }
        let mut statements = self.answer.statements(sql).into_iter().peekable();
        if statements.peek().is_none() {
            self.answer.query(sql, &mut out).await?;
        }
        while let Some(statement) = statements.next() {
            out.more(statements.peek().is_some());
            self.answer.query(statement, &mut out).await?;
            if out.failed() {
                break;
            }
        }
        Ok(())
    }

    fn bounds(&self) -> Bounds {
        let limits = &self.door.limits;
        Bounds {
            statements: limits.statements_max,
            bytes: limits.packet_bytes_max.min(self.answer.kept_bytes_max()),
        }
    }

    async fn prepare(&mut self, sql: &[u8], mut out: Out<'_>) -> Result<(), Broken> {
        let kept = match self.answer.prepare(sql).await {
            Ok(prepared) => self
                .statements
                .keep(sql, prepared.params, self.bounds())
                .map(|id| (id, prepared)),
            Err(refused) => Err(refused),
        };
        match kept {
            Ok((id, prepared)) => out.prepared(id, &prepared, self.answer.status()).await?,
            Err(refused) => out.err(&refused).await?,
        }
        Ok(())
    }

    async fn ping(&mut self, mut out: Out<'_>) -> Result<(), Broken> {
        match rt::select(self.answer.ping(), out.gone()).await {
            rt::Either::Left(there) => there?,
            rt::Either::Right(()) => return Err(Broken::Gone),
        }
        Ok(out.ok(&Done::default(), self.answer.status()).await?)
    }

    async fn execute(
        &mut self,
        execute: &wire::command::Execute<'_>,
        mut out: Out<'_>,
    ) -> Result<(), Broken> {
        let (values, statement) = match self.statements.bind(execute, self.caps) {
            Ok(bound) => bound,
            Err(refused) => {
                out.err(&refused).await?;
                return Ok(());
            }
        };
        self.answer
            .execute(&statement.sql, &values, &mut out)
            .await?;
        self.statements.forget_long(execute.id);
        Ok(())
    }

    async fn change_user(&mut self, body: &[u8], conn: &mut Conn, rt: &Rt) -> Result<bool, Broken> {
        let change = match ChangeUser::read(body, self.caps) {
            Ok(change) => change,
            Err(malformed) => {
                let refused = Refused::new(errors::HANDSHAKE, malformed.to_string());
                Out::new(conn, self.caps, false).err(&refused).await?;
                return Ok(false);
            }
        };
        // Whatever it proves with is bound to a nonce that it may have forgotten: it is asked anew.
        let plugin = change.auth_plugin.as_deref();
        if !login::prove(
            &*self.door.host,
            conn,
            &change.user,
            plugin,
            &[],
            login::fresh(rt),
            rt,
        )
        .await?
        {
            return Ok(false);
        }
        let who = Who {
            id: self.id,
            user: change.user,
            schema: change.database,
            peer: conn.peer(),
            caps: self.caps & (OFFERED | caps::MULTI_STATEMENTS | caps::LOCAL_FILES),
        };
        let Some(answer) = begin(&self.door, who, conn).await? else {
            return Ok(false);
        };
        self.answer = answer;
        self.statements = Statements::default();
        Ok(true)
    }
}
