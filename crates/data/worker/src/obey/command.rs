//! One command, by way of the scripts if there are any.

use crate::command::trouble::Ended;
use crate::known::answer;
use crate::known::answer::{Complaint, Turn};
use crate::known::epoch::Epoch;
use crate::obey::statistics;
use crate::session::Session;
use backend::Names;
use bridge::Counter;
use wire::attributes::Attributes;
use wire::command::Command;
use wire::{caps, command, errors, packet};

impl Session {
    /// One command, by way of the scripts if there are any.
    pub(crate) async fn take(&mut self, epoch: &Epoch, came: &[u8]) -> Result<(), Ended> {
        match self.meets_scripts(epoch) {
            false => self.obey(epoch, came).await,
            true => Box::pin(self.converse(epoch, came)).await,
        }
    }

    /// One command. What needs a server goes through `statement.rs`; the rest is answered here.
    pub(crate) async fn obey(&mut self, epoch: &Epoch, came: &[u8]) -> Result<(), Ended> {
        self.core
            .tally
            .add(Counter::QueriesFrontendsBytesRecv, came.len() as u64 + 4);
        self.turn = Turn::after(came.len());
        self.entry
            .comes(came.first().map_or("Unknown", |byte| command::name(*byte)));
        let command = match Command::read(came, self.caps) {
            Ok(command) => command,
            Err(malformed) => {
                self.core.tally.up(Counter::UnexpectedFrontendPackets);
                if epoch.claims_mariadb()
                    && came.first().is_some_and(|code| !command::has_answer(*code))
                {
                    // What has no answer there has none when it is too short either.
                    return Ok(());
                }
                return self
                    .refuse(&Complaint::with(1835, "HY000", malformed.to_string()))
                    .await;
            }
        };
        self.foresee_modes();
        let flags = self.flags();
        match command {
            Command::Query(query) => match Attributes::of_query(query.attributes) {
                Ok(attributes) => self.query(epoch, query.sql, &attributes).await,
                Err(malformed) => {
                    self.refuse(&Complaint::with(1835, "HY000", malformed.to_string()))
                        .await
                }
            },
            Command::Prepare(sql) => self.prepare(epoch, sql).await,
            Command::Execute(execute) => self.execute(epoch, &execute).await,
            Command::BulkExecute { id, flags, params } if wire::bulk::is_known(self.caps) => {
                Box::pin(self.bulk_execute(epoch, id, flags, params)).await
            }
            Command::SendLongData { id, param, data } => {
                self.keep_long_data(epoch, id, param, data)
            }
            Command::Close(id) => {
                self.close_statement(id);
                Ok(())
            }
            Command::Fetch { id, rows } => self.fetch(epoch, id, rows).await,
            Command::Reset(id) => self.reset_statement(epoch, id).await,
            Command::InitDb(schema) => self.init_db(epoch, schema).await,
            Command::FieldList { .. } => self.field_list(epoch, came).await,
            Command::Ping => {
                self.remembered.row_count.set(0);
                self.next_statement();
                if self.held.holds().next().is_some() {
                    Box::pin(self.ping_held()).await?;
                }
                self.hand_over(answer::ok(1, self.caps, self.flags(), ""))
                    .await
            }
            Command::Statistics => {
                let mut line = Vec::new();
                packet::append(
                    &mut line,
                    &mut 1,
                    statistics::in_a_line(&self.core).as_bytes(),
                );
                self.hand_over(line).await
            }
            Command::SetOption(option) => {
                self.remembered.counts_by_itself(-1);
                self.caps = match option {
                    command::SET_OPTION_MULTI_STATEMENTS_ON => self.caps | caps::MULTI_STATEMENTS,
                    command::SET_OPTION_MULTI_STATEMENTS_OFF => self.caps & !caps::MULTI_STATEMENTS,
                    _ => {
                        return self
                            .refuse(&Complaint::with(
                                1047,
                                "08S01",
                                "Unknown option of COM_SET_OPTION",
                            ))
                            .await;
                    }
                };
                self.hand_over(answer::eof(self.caps, flags)).await
            }
            Command::ResetConnection => {
                // MariaDB keeps the character set of the login, MySQL does not.
                let names = if epoch.claims_mariadb() {
                    Names::Collation(self.collation)
                } else {
                    Names::of_the_server()
                };
                Box::pin(self.starts_over(names)).await;
                self.hand_over(answer::ok(1, self.caps, self.flags(), ""))
                    .await
            }
            Command::ChangeUser(body) if self.is_relayed() => {
                Box::pin(self.changes_user_there(epoch, body)).await
            }
            Command::ChangeUser(body) => Box::pin(self.change_user(body)).await,
            Command::ProcessKill(session) => {
                Box::pin(self.kill(epoch, u64::from(session), false)).await
            }
            Command::RegisterSlave(_) => Box::pin(self.register_replica(epoch, came)).await,
            Command::BinlogDump(_) | Command::BinlogDumpGtid(_) => {
                Box::pin(self.follow_log(epoch, came)).await
            }
            Command::Unknown(command::COM_PROCESS_INFO) => self.process_info(epoch, came).await,
            Command::Quit => Err(Ended::ByClient),
            other if !other.is_answered() => Ok(()),
            _ => {
                let name = came.first().map_or("", |byte| command::name(*byte));
                self.refuse(&Complaint::new(
                    errors::UNKNOWN_COMMAND,
                    format!("{name} is not supported by this proxy"),
                ))
                .await
            }
        }
    }
}
