//! Statements of several sessions in flight on one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use conformance::by_hand::{self, Raw};
use conformance::clients::{Client, app};
use conformance::proxy::{Driver, Proxy};
use conformance::servers::{Server, Vendor};
use conformance::trials::{expect, vendors_in_turn};
use conformance::{cache, raw};

use super::{Outcome, asked, counted, log_in, one_of, running, same, until_shared, wish};

pub(super) fn hanging(driver: Driver) -> Outcome {
    let (well, hangs) = (
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    );
    for server in [&well, &hangs] {
        server.root(by_hand::CREATE_USER)?;
    }
    let mut wish = wish(&well);
    wish.servers = format!(
        "{},\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 1, max_connections = 3 }}",
        wish.servers, hangs.port
    );
    let proxy = Proxy::start(driver, &wish)?;
    pipeline(&proxy, &[0, 1], 4)?;
    let there = "SELECT /* hostgroup=1 */ 1";
    let mut stuck: Vec<Raw> = (0..12).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
    for client in &mut stuck {
        for _ in 0..5 {
            asked(client, there)?;
        }
    }
    hangs.signal("STOP");
    for client in &mut stuck {
        client.query(there).map_err(|error| error.to_string())?;
    }
    running(&proxy, 12)?;
    // On both cores.
    let mut others: Vec<Raw> = (0..4).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
    for n in 0..100 {
        for client in &mut others {
            same(
                asked(client, &format!("SELECT {n}"))?,
                vec![vec![n.to_string()]],
            )?;
        }
    }
    hangs.signal("CONT");
    let mut served = 0;
    for client in &mut stuck {
        match client.rows() {
            Ok(rows) => {
                same(rows, vec![vec!["1".to_owned()]])?;
                served += 1;
            }
            // One that stood in line for a connection that could not be opened meanwhile.
            Err(error) => expect(error.to_string().starts_with("9001"), || error.to_string())?,
        }
    }
    expect(served > 0, || {
        "the server was forgotten, and nobody was served when it went on".to_owned()
    })
}

fn pipeline(proxy: &Proxy, hostgroups: &[u32], depth: u32) -> Outcome {
    for hostgroup in hostgroups {
        let row = format!("({hostgroup}, '{{\"pipelining\": {depth}}}')");
        proxy.admin(&format!("REPLACE INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES {row}"))?;
    }
    proxy.admin("LOAD MYSQL SERVERS TO RUNTIME").map(drop)
}

pub(super) fn pipelined(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (_server, proxy) = one_of(driver, vendor)?;
        let workers = |proxy: &Proxy| -> Outcome {
            let clients: Vec<Raw> = (0..24).map(|_| log_in(proxy)).collect::<Result<_, _>>()?;
            let works = clients.into_iter().enumerate().map(|(who, mut client)| {
                thread::spawn(move || {
                    for n in 0..100 {
                        let own = who * 1000 + n;
                        let rows = asked(&mut client, &format!("SELECT {own}, 'of {who}'"))?;
                        same(rows, vec![vec![own.to_string(), format!("of {who}")]])?;
                        if n % 25 == 24 {
                            // What is one's own stays one's own.
                            asked(&mut client, &format!("SET @own = {own}"))?;
                            same(
                                asked(&mut client, "SELECT @own")?,
                                vec![vec![own.to_string()]],
                            )?;
                        }
                    }
                    Ok::<_, String>(())
                })
            });
            let works: Vec<_> = works.collect();
            works
                .into_iter()
                .try_for_each(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
        };
        workers(&proxy)?;
        same(counted(&proxy, "Millrace_statements_pipelined")?, 0)?;
        pipeline(&proxy, &[0], 16)?;
        workers(&proxy)?;
        let shared = counted(&proxy, "Millrace_statements_pipelined")?;
        // How many depends on how quick the machine is.
        expect(shared > 0, || {
            format!("{vendor}: none of 2400 shared a connection")
        })?;
        let said = proxy.admin(
            "SELECT SUM(count_star) FROM stats_mysql_query_digest WHERE digest_text = 'SELECT ?,?'",
        )?;
        same(said.trim(), "4800")?;
    }
    Ok(())
}

/// Clients are told what they are told over connections of their own, byte for byte.
pub(super) fn pipelined_executions(driver: Driver) -> Outcome {
    const ONE: &str = "SELECT ? AS given, 'one' AS statement";
    const OTHER: &str = "SELECT ? AS given, 'other' AS statement";
    for vendor in vendors_in_turn() {
        let (server, proxy) = one_of(driver, vendor)?;
        // MySQL lets an account in by a full exchange first.
        let warm_up = cache::root().join("conformance/scenarios/warm-up.txt");
        let _has_been_there = Client::MariaDbCli.run(app(server.port), &warm_up);
        pipeline(&proxy, &[0], 16)?;
        let work = |who: u64| {
            let (direct, through) = (server.port, proxy.port);
            thread::spawn(move || {
                let [mut direct, mut through] =
                    [raw::Raw::log_in(direct, 0)?, raw::Raw::log_in(through, 0)?];
                // Not all in the same order: their numbers differ, of a client and on a server.
                let texts = if who.is_multiple_of(2) {
                    [ONE, OTHER]
                } else {
                    [OTHER, ONE]
                };
                for text in texts {
                    direct.prepare(text)?;
                    through.prepare(text)?;
                }
                for n in 0..100_u64 {
                    let value = (who * 1_000_000 + n).to_le_bytes();
                    let word = format!("{who}-{n}");
                    // Some say it as a number, and some as a text, which MySQL reads otherwise.
                    let params = match who % 3 {
                        0 => [
                            &[0, 1, 0xfd, 0, u8::try_from(word.len()).unwrap_or(0)],
                            word.as_bytes(),
                        ]
                        .concat(),
                        _ => [&[0, 1, 8, 0][..], &value].concat(),
                    };
                    let nth = usize::from(n % 3 == 0);
                    let (wanted, found) = (
                        direct.execute(nth, 0, &params)?,
                        through.execute(nth, 0, &params)?,
                    );
                    expect(wanted == found, || {
                        format!("{who}, {n}: {found}\ninstead of\n{wanted}")
                    })?;
                }
                Ok::<_, String>(())
            })
        };
        until_shared(&proxy, || {
            let works: Vec<_> = (1..=12).map(work).collect();
            works
                .into_iter()
                .try_for_each(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
        })?;
        let ran = counted(&proxy, "Com_backend_stmt_execute")?;
        expect(ran >= 12 * 100, || format!("{vendor}: {ran} executions"))?;
    }
    Ok(())
}

pub(super) fn unfit(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (_server, proxy) = one_of(driver, vendor)?;
        pipeline(&proxy, &[0], 16)?;
        let mut client = log_in(&proxy)?;
        until_shared(&proxy, || {
            asked(&mut client, "SELECT EXP(1)")?;
            asked(&mut client, "SELECT REPEAT('x', 3)")?;
            asked(&mut client, "SELECT CAST('1' AS SIGNED)").map(drop)
        })?;
        let said = client.ask("SELECT EXP(1000)");
        expect(
            said.as_ref()
                .is_err_and(|error| error.to_string().starts_with("1690")),
            || format!("{said:?}"),
        )?;
        let told = asked(&mut client, "SHOW WARNINGS")?;
        expect(told.iter().any(|row| row[1] == "1690"), || {
            format!("{told:?}")
        })?;
        same(
            asked(&mut client, "SELECT CAST('x' AS SIGNED)")?,
            vec![vec!["0".to_owned()]],
        )?;
        let told = asked(&mut client, "SHOW WARNINGS")?;
        expect(told.len() == 1, || format!("{told:?}"))?;
        for len in [20_000, 1_000_000, 3] {
            let rows = asked(&mut client, &format!("SELECT REPEAT('x', {len})"))?;
            same(rows.concat().concat().len(), len)?;
        }
        same(asked(&mut client, "SELECT 1")?, vec![vec!["1".to_owned()]])?;
    }
    Ok(())
}

pub(super) fn killed(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one_of(driver, vendor)?;
        pipeline(&proxy, &[0], 16)?;
        let read = "SELECT COUNT(*) FROM conf.counted";
        let mut clients: Vec<Raw> = (0..8).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
        until_shared(&proxy, || {
            clients
                .iter_mut()
                .try_for_each(|client| asked(client, read).map(drop))
        })?;
        // Nobody can read now.
        let mut locker = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        asked(&mut locker, "LOCK TABLES conf.counted WRITE")?;
        for client in &mut clients {
            client.query(read).map_err(|error| error.to_string())?;
        }
        running(&proxy, clients.len())?;
        for at in [0, 5] {
            proxy.admin(&format!("KILL QUERY {}", clients[at].id))?;
            let said = clients[at].rows();
            expect(
                said.as_ref()
                    .is_err_and(|error| error.to_string().starts_with("1317")),
                || format!("{vendor}: {said:?}"),
            )?;
        }
        // One just leaves.
        drop(clients.remove(3));
        asked(&mut locker, "UNLOCK TABLES")?;
        for (at, client) in clients.iter_mut().enumerate() {
            if ![0, 4].contains(&at) {
                let rows = client
                    .rows()
                    .map_err(|error| format!("{vendor}: {at}: {error}"))?;
                same(rows.len(), 1)?;
            }
        }
        for client in &mut clients {
            same(asked(client, read)?.len(), 1)?;
        }
    }
    Ok(())
}

/// Two servers of one hostgroup.
pub(super) fn weighed(driver: Driver) -> Outcome {
    let servers = [
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    ];
    for server in &servers {
        server.root(by_hand::CREATE_USER)?;
    }
    let mut wish = wish(&servers[0]);
    wish.servers = format!(
        "{},\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 0, max_connections = 2000 }}",
        wish.servers, servers[1].port
    );
    let proxy = Proxy::start(driver, &wish)?;
    pipeline(&proxy, &[0], 16)?;
    let mut first = log_in(&proxy)?;
    until_shared(&proxy, || {
        (0..20).try_for_each(|n| asked(&mut first, &format!("SELECT {n}")).map(drop))
    })?;
    let over = Arc::new(AtomicBool::new(false));
    let works: Vec<_> = (0..16)
        .map(|_| {
            let (mut client, over) = (log_in(&proxy)?, over.clone());
            Ok(thread::spawn(move || {
                let mut n = 0;
                while !over.load(Ordering::Relaxed) {
                    asked(&mut client, &format!("SELECT {n}"))?;
                    n += 1;
                }
                Ok::<_, String>(())
            }))
        })
        .collect::<Result<_, String>>()?;
    let asked_of = |server: &Server| -> Result<u64, String> {
        let sql = format!(
            "SELECT Queries FROM stats_mysql_connection_pool WHERE srv_port = {}",
            server.port
        );
        let said = proxy.admin(&sql)?;
        said.trim().parse().map_err(|_| format!("{said:?} queries"))
    };
    let counted = |pause: u64| {
        let before = [asked_of(&servers[0])?, asked_of(&servers[1])?];
        thread::sleep(Duration::from_millis(pause));
        Ok::<_, String>([
            asked_of(&servers[0])? - before[0],
            asked_of(&servers[1])? - before[1],
        ])
    };
    thread::sleep(Duration::from_millis(200));
    let [one, other] = counted(1500)?;
    let share = one * 100 / (one + other).max(1);
    expect((35..=65).contains(&share), || format!("{one} and {other}"))?;
    proxy.admin(&format!(
        "UPDATE mysql_servers SET weight = 0 WHERE port = {}; LOAD MYSQL SERVERS TO RUNTIME",
        servers[0].port
    ))?;
    thread::sleep(Duration::from_millis(200));
    let [one, other] = counted(500)?;
    expect(one == 0 && other > 0, || {
        format!("{one} where the weight is 0, and {other}")
    })?;
    over.store(true, Ordering::Relaxed);
    works
        .into_iter()
        .try_for_each(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
}

/// Transactions wait for connections of their own, of which one a second may be opened: short reads
/// go on together.
pub(super) fn shared_at_a_pace(driver: Driver) -> Outcome {
    let (_server, proxy) = one_of(driver, Vendor::MariaDb)?;
    pipeline(&proxy, &[0], 16)?;
    let mut first = log_in(&proxy)?;
    until_shared(&proxy, || {
        (0..20).try_for_each(|n| asked(&mut first, &format!("SELECT {n}")).map(drop))
    })?;
    let over = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..40)
        .map(|_| {
            let (mut client, over) = (log_in(&proxy)?, over.clone());
            Ok(thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    asked(&mut client, "SELECT 1")?;
                }
                Ok::<_, String>(())
            }))
        })
        .collect::<Result<_, String>>()?;
    thread::sleep(Duration::from_millis(500));
    proxy.admin(
        "SET mysql-throttle_connections_per_sec_to_hostgroup = 1; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let mut client = log_in(&proxy)?;
            Ok(thread::spawn(move || {
                asked(&mut client, "BEGIN")?;
                thread::sleep(Duration::from_secs(3));
                asked(&mut client, "COMMIT").map(drop)
            }))
        })
        .collect::<Result<_, String>>()?;
    thread::sleep(Duration::from_secs(1));
    let before = counted(&proxy, "Millrace_statements_pipelined")?;
    thread::sleep(Duration::from_secs(2));
    let shared = counted(&proxy, "Millrace_statements_pipelined")? - before;
    over.store(true, Ordering::Relaxed);
    let all = readers.into_iter().chain(writers);
    all.map(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
        .collect::<Result<Vec<()>, String>>()?;
    expect(shared > 200, || {
        format!("{shared} statements were answered in lanes")
    })
}

/// FOUND_ROWS() of a statement that was killed could not be asked for, and the count of the
/// statement before is not its.
pub(super) fn found_when_killed(driver: Driver) -> Outcome {
    let (server, proxy) = one_of(driver, Vendor::MariaDb)?;
    pipeline(&proxy, &[0], 16)?;
    let read = "SELECT id FROM conf.counted LIMIT 7";
    let mut client = log_in(&proxy)?;
    until_shared(&proxy, || asked(&mut client, read).map(drop))?;
    let mut locker = Raw::log_in(server.port).map_err(|error| error.to_string())?;
    asked(&mut locker, "LOCK TABLES conf.counted WRITE")?;
    same(
        asked(
            &mut client,
            "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 LIMIT 3",
        )?
        .len(),
        3,
    )?;
    client.query(read).map_err(|error| error.to_string())?;
    running(&proxy, 1)?;
    proxy.admin(&format!("KILL QUERY {}", client.id))?;
    let said = client.rows();
    expect(
        said.as_ref()
            .is_err_and(|error| error.to_string().starts_with("1317")),
        || format!("{said:?}"),
    )?;
    asked(&mut locker, "UNLOCK TABLES")?;
    let said = client.ask("SELECT FOUND_ROWS()");
    expect(
        said.as_ref()
            .is_err_and(|error| error.to_string().starts_with("1235")),
        || format!("{said:?}"),
    )
}
