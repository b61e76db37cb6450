//! The door with a host that repeats what it is told.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod client;

use client::{Client, Got};
use door::{Answer, Done, Door, Entry, Host, Limits, Out, Prepared, Refused, Who};
use net::Credential;
use net::tls::{Acceptor, Connector, SelfSigned, Settings};
use rt::{Address, Driver, ListenOptions, Rt};
use std::io;
use std::rc::Rc;
use std::time::Duration;
use wire::auth::{Plugin, native_stage2};
use wire::caps;
use wire::errors;
use wire::execute::Value;
use wire::resultset::Column;
use wire::status;

struct Parrot {
    acceptor: Option<Acceptor>,
}

struct Repeats {
    schema: String,
    /// Its commands may have 100 bytes.
    is_short: bool,
}

impl Host for Parrot {
    type Session = Repeats;

    fn server_version(&self) -> String {
        "8.0.11".into()
    }

    fn acceptor(&self) -> Option<Acceptor> {
        self.acceptor.clone()
    }

    fn entry(&self, user: &str, _: &Address) -> Entry {
        match user {
            "poll" => Entry::password("secret".into()),
            "open" => Entry::password(String::new()),
            "hashed" => Entry::User(vec![Credential::Native(native_stage2(b"secret"))]),
            "far" => Entry::Refuse(Refused::new(errors::TOO_MANY_CONNECTIONS, "not from there")),
            _ => Entry::Nobody,
        }
    }

    fn session(self: &Rc<Self>, who: Who) -> Result<Repeats, Refused> {
        Ok(Repeats {
            schema: who.schema.unwrap_or_default(),
            is_short: false,
        })
    }
}

impl Answer for Repeats {
    fn status(&self) -> u16 {
        status::AUTOCOMMIT
    }

    async fn query(&mut self, sql: &[u8], out: &mut Out<'_>) -> io::Result<()> {
        match door::text(sql).unwrap() {
            "fail" => out.err(&Refused::new(errors::PARSE, "no")).await,
            "short" => {
                self.is_short = true;
                out.ok(&Done::default(), self.status()).await
            }
            "done" => {
                out.ok(
                    &Done {
                        affected: 3,
                        insert_id: 4,
                        info: "words".into(),
                        warnings: 0,
                    },
                    self.status(),
                )
                .await
            }
            "many" => {
                out.columns(vec![Column::integer("n")], self.status());
                for n in 0..100_000 {
                    out.row(&[Value::Int(n)]);
                    out.room().await?;
                }
                out.end(self.status()).await
            }
            other => {
                out.rows(
                    vec![Column::text("said")],
                    &[vec![Some(other.into())], vec![None]],
                    self.status(),
                )
                .await
            }
        }
    }

    fn command_bytes_max(&self) -> usize {
        if self.is_short { 100 } else { usize::MAX }
    }

    async fn prepare(&mut self, sql: &[u8]) -> Result<Prepared, Refused> {
        let params = door::text(sql)?.matches('?').count() as u16;
        Ok(Prepared {
            params,
            columns: vec![Column::text("said")],
        })
    }

    async fn execute(
        &mut self,
        _: &[u8],
        values: &[Value<'_>],
        out: &mut Out<'_>,
    ) -> io::Result<()> {
        let said: Vec<_> = values.iter().map(ToString::to_string).collect();
        out.rows(
            vec![Column::text("said")],
            &[vec![Some(said.join("|"))]],
            self.status(),
        )
        .await
    }

    fn use_schema(&mut self, schema: &str) -> Result<(), Refused> {
        schema.clone_into(&mut self.schema);
        Ok(())
    }

    fn fields(&mut self, table: &str) -> Result<Vec<Column>, Refused> {
        Ok(vec![Column::text("a").of("", table)])
    }

    fn reset(&mut self) {
        self.schema.clear();
    }

    fn statistics(&self) -> String {
        format!("Schema: {}", self.schema)
    }
}

fn with<F: Future<Output = ()>>(limits: Limits, test: impl FnOnce(Rt, Address) -> F) {
    let main = |rt: Rt| async move {
        let listener = rt
            .listen(&"127.0.0.1:0".parse().unwrap(), ListenOptions::default())
            .unwrap();
        let at = listener.local();
        rt.spawn(Door::new(Rc::new(Parrot { acceptor: None }), limits).serve(rt.clone(), listener));
        test(rt, at).await;
    };
    rt::run(Driver::READINESS, main).unwrap();
}

async fn enter(rt: &Rt, at: &Address) -> Client {
    Client::login(rt, at, "poll", "secret", Plugin::MysqlNative, 0)
        .await
        .unwrap_or_else(|refused| panic!("{refused:?}"))
}

#[test]
fn clients_of_both_plugins_come_in_with_the_right_password_only() {
    with(Limits::default(), |rt, at| async move {
        for plugin in [
            Plugin::MysqlNative,
            Plugin::CachingSha2,
            Plugin::ClearPassword,
        ] {
            for (user, password, comes_in) in [
                ("poll", "secret", true),
                ("poll", "wrong", false),
                ("poll", "", false),
                ("nobody", "secret", false),
                ("nobody", "", false),
                ("open", "", true),
                ("hashed", "secret", true),
                ("hashed", "wrong", false),
            ] {
                let outcome = Client::login(&rt, &at, user, password, plugin, 0)
                    .await
                    .map(drop);
                match outcome {
                    Ok(()) => assert!(comes_in, "{plugin:?} {user} {password}"),
                    Err((code, words)) => {
                        assert!(
                            !comes_in
                                && code == 1045
                                && words.starts_with("Access denied for user"),
                            "{plugin:?} {user}: {words}"
                        );
                    }
                }
            }
        }
        let refused = Client::login(&rt, &at, "far", "", Plugin::MysqlNative, 0)
            .await
            .map(drop);
        assert_eq!(refused, Err((1040, "not from there".into())));
    });
}

#[test]
fn a_command_gets_its_answer() {
    with(Limits::default(), |rt, at| async move {
        let client = enter(&rt, &at).await;
        assert_eq!(client.query("hello").await.texts(), [["hello"], ["NULL"]]);
        assert_eq!(
            client.query("done").await,
            Got::Ok {
                affected: 3,
                insert_id: 4,
                status: 2,
                info: "words".into()
            }
        );
        assert_eq!(client.query("fail").await, Got::Err(1064, "no".into()));
        assert_eq!(client.query("one; two").await.texts()[0], ["one; two"]);
        assert_eq!(client.query("many").await.texts().len(), 100_000);
        client.command(0x02, b"shop").await;
        assert!(matches!(client.answer(false).await, Got::Ok { .. }));
        client.command(0x09, b"").await;
        assert_eq!(client.packet().await.unwrap(), b"Schema: shop");
        client.command(0x1F, b"").await;
        assert!(matches!(client.answer(false).await, Got::Ok { .. }));
        client.command(0x0E, b"").await;
        assert!(matches!(client.answer(false).await, Got::Ok { .. }));
        for byte in [0x05, 0x0D, 0x12, 0x1C, 0x20, 0x77] {
            client.command(byte, &[0; 8]).await;
            assert_eq!(client.answer(false).await.code(), 1047, "{byte:#x}");
        }
        client.command(0x01, b"").await;
        assert_eq!(client.packet().await, None);
    });
}

#[test]
fn several_statements_are_answered_one_by_one_until_one_fails() {
    with(Limits::default(), |rt, at| async move {
        let client = Client::login(
            &rt,
            &at,
            "poll",
            "secret",
            Plugin::CachingSha2,
            caps::MULTI_STATEMENTS,
        )
        .await;
        let client = client.unwrap_or_else(|refused| panic!("{refused:?}"));
        let first = client.query("one; done ;fail; four").await;
        assert_eq!(first.texts()[0], ["one"]);
        assert!(first.status() & status::MORE_RESULTS != 0);
        let second = client.answer(false).await;
        assert!(second.status() & status::MORE_RESULTS != 0);
        assert_eq!(client.answer(false).await.code(), 1064);
        // Nothing of the fourth: the next answer is that of the next command.
        let last = client.query("again;").await;
        assert_eq!(
            (last.texts()[0].clone(), last.status()),
            (vec!["again".into()], status::AUTOCOMMIT)
        );
        assert!(matches!(client.query("fail").await, Got::Err(..)));
    });
}

#[test]
fn prepared_statements_take_their_parameters_in_one_piece_or_in_many() {
    with(
        Limits {
            statements_max: 2,
            ..Limits::default()
        },
        |rt, at| async move {
            let client = enter(&rt, &at).await;
            let (id, columns, params) = client.prepare("SELECT ?, ?, ?").await.unwrap();
            assert_eq!((columns, params), (1, 3));
            let got = client.execute(id, &[Some("a"), None, Some("c")]).await;
            assert!(
                matches!(&got, Got::Rows { rows, .. } if rows[0][0].as_ref().unwrap().ends_with(b"\x08a|NULL|c")),
                "{got:?}"
            );
            // A piece of the third parameter, and another.
            for piece in [&b"long"[..], b"er"] {
                client
                    .command(
                        0x18,
                        &[&id.to_le_bytes()[..], &2u16.to_le_bytes(), piece].concat(),
                    )
                    .await;
            }
            let mut body = id.to_le_bytes().to_vec();
            body.extend_from_slice(&[
                0, 1, 0, 0, 0, 0, 1, 0xFD, 0, 0xFD, 0, 0xFD, 0, 1, b'x', 1, b'y',
            ]);
            client.command(0x17, &body).await;
            let got = client.answer(true).await;
            assert!(
                matches!(&got, Got::Rows { rows, .. } if rows[0][0].as_ref().unwrap().ends_with(b"x|y|longer")),
                "{got:?}"
            );
            assert!(client.prepare("SELECT 2").await.is_ok());
            assert!(client.prepare("SELECT 3").await.is_err());
            client.command(0x19, &id.to_le_bytes()).await;
            assert_eq!(client.execute(id, &[]).await.code(), 1243);
            assert!(client.prepare("SELECT 3").await.is_ok());
        },
    );
}

#[test]
fn what_is_too_much_is_refused_and_others_go_on() {
    let limits = Limits {
        connections_max: 3,
        packet_bytes_max: 1000,
        login_ms_max: 100,
        ..Limits::default()
    };
    with(limits, |rt, at| async move {
        let good = enter(&rt, &at).await;
        let large = enter(&rt, &at).await;
        let got = large.query(&"x".repeat(1001)).await;
        assert_eq!(got.code(), 1153);
        assert_eq!(large.query("less").await.texts()[0], ["less"]);
        large.query("short").await;
        assert_eq!(large.query(&"x".repeat(101)).await.code(), 1153);
        assert_eq!(large.query("less").await.texts()[0], ["less"]);
        drop(large);
        rt.sleep(Duration::from_millis(50)).await;
        // Somebody who says nothing is sent away; until then he has a place.
        let silent = Client::raw(&rt, &at).await;
        silent.packet().await.unwrap();
        let other = Client::raw(&rt, &at).await;
        other.packet().await.unwrap();
        let refused = Client::login(&rt, &at, "poll", "secret", Plugin::MysqlNative, 0)
            .await
            .map(drop);
        assert_eq!(refused, Err((1040, "Too many connections".into())));
        assert_eq!(silent.packet().await, None);
        rt.sleep(Duration::from_millis(50)).await;
        // Garbage ends its own session.
        let garbage = Client::raw(&rt, &at).await;
        garbage.packet().await.unwrap();
        garbage.socket.send(vec![0xFF; 300]).await.unwrap();
        while garbage.packet().await.is_some() {}
        assert_eq!(good.query("still here").await.texts()[0], ["still here"]);
    });
}

#[test]
fn one_who_does_not_read_does_not_stop_the_others() {
    with(Limits::default(), |rt, at| async move {
        let slow = enter(&rt, &at).await;
        for _ in 0..50 {
            slow.command(3, b"many").await;
        }
        let good = enter(&rt, &at).await;
        for _ in 0..100 {
            assert_eq!(good.query("x").await.texts()[0], ["x"]);
        }
        assert_eq!(slow.answer(false).await.texts().len(), 100_000);
    });
}

#[test]
fn one_who_never_reads_is_sent_away_in_the_end() {
    with(
        Limits {
            connections_max: 1,
            read_ms_max: 300,
            ..Limits::default()
        },
        |rt, at| async move {
            let silent = enter(&rt, &at).await;
            for _ in 0..50 {
                silent.command(3, b"many").await;
            }
            // There is one place.
            while Client::login(&rt, &at, "poll", "secret", Plugin::MysqlNative, 0)
                .await
                .is_err()
            {
                rt.sleep(Duration::from_millis(20)).await;
            }
            drop(silent);
        },
    );
}

#[test]
fn another_user_can_take_over_a_connection() {
    with(Limits::default(), |rt, at| async move {
        let client = enter(&rt, &at).await;
        client
            .command(0x11, b"open\0\0shop\0\x2d\0mysql_native_password\0")
            .await;
        assert!(matches!(client.answer(false).await, Got::Ok { .. }));
        client.command(0x09, b"").await;
        assert_eq!(client.packet().await.unwrap(), b"Schema: shop");
        client
            .command(0x11, b"nobody\0\0\0\x2d\0mysql_native_password\0")
            .await;
        // It is asked for a proof, and has none.
        assert_eq!(client.packet().await.unwrap()[0], 0xFE);
        client.send(|out| out.extend_from_slice(&[1; 20])).await;
        assert_eq!(client.answer(false).await.code(), 1045);
        assert_eq!(client.packet().await, None);
    });
}

/// A9: operators come in over TLS, with the client that the proxy itself uses towards servers.
#[test]
fn clients_that_want_tls_get_it() {
    let made = SelfSigned::generate().unwrap();
    let acceptor = Acceptor::new(&made.certificate, &made.key).unwrap();
    let main = |rt: Rt| async move {
        let listener = rt
            .listen(&"127.0.0.1:0".parse().unwrap(), ListenOptions::default())
            .unwrap();
        let at = listener.local();
        let host = Rc::new(Parrot {
            acceptor: Some(acceptor),
        });
        rt.spawn(Door::new(host, Limits::default()).serve(rt.clone(), listener));
        let connector = Connector::new(&Settings::default()).unwrap();
        for (password, tls) in [
            ("secret", Some(&connector)),
            ("secret", None),
            ("wrong", Some(&connector)),
        ] {
            let mut conn = net::Conn::new(rt.connect(&at).await.unwrap());
            let secret = net::Secret::Clear(password.into());
            let account = net::Account {
                user: "poll",
                secret: &secret,
                database: Some("shop"),
                caps: client::CAPS,
                charset: 45,
                attributes: &wire::connect_attributes::ConnectAttributes::default(),
                compression: None,
                tls,
                host: "localhost",
                never_in_clear: false,
            };
            let outcome = net::login(&mut conn, &account).await;
            assert_eq!(outcome.is_ok(), password == "secret", "{outcome:?}");
            assert_eq!(conn.is_tls(), tls.is_some());
            if outcome.is_ok() {
                conn.restart_at(0);
                conn.reply(b"\x03hello").await.unwrap();
                assert_eq!(conn.packet(100).await.unwrap().payload(), b"\x01");
            }
        }
        // Who does not ask for it comes in without.
        assert_eq!(enter(&rt, &at).await.query("x").await.texts()[0], ["x"]);
    };
    rt::run(Driver::READINESS, main).unwrap();
}
