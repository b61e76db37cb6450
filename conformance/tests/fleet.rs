//! A fleet of proxies with one truth in etcd: what is loaded on one of them is in force on all, and
//! clients lose nothing, whoever dies.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;
use std::{fs, thread};

use conformance::etcd::Etcd;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, soon};

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        (
            "what_is_loaded_on_one_is_in_force_on_all_and_can_be_taken_back",
            one_for_all,
        ),
        (
            "of_two_operators_at_once_one_is_told_who_was_faster",
            two_at_once,
        ),
        (
            "clients_lose_nothing_while_nodes_all_of_etcd_and_a_proxy_die",
            deaths,
        ),
        ("a_wiped_etcd_takes_nothing_away", wiped),
        ("passwords_are_in_etcd_only_with_a_key", sealed),
        ("etcd_is_asked_over_tls_with_a_certificate", over_tls),
        (
            "a_look_up_is_filled_when_all_proxies_write_its_entries",
            look_up,
        ),
    ])
}

/// Three proxies in front of one server, with one store and one key.
struct Fleet {
    proxies: Vec<Proxy>,
    etcd: Etcd,
    server: Server,
}

const KEY: &str = "0123456789abcdef0123456789abcdef";

impl Fleet {
    fn start(driver: Driver) -> Result<Self, String> {
        let server = Server::start(Vendor::MariaDb)?;
        let etcd = Etcd::start(3)?;
        let wish = Wish::in_front_of(&server);
        let mut proxies = Vec::new();
        for _ in 0..3 {
            let proxy = Proxy::start(driver, &wish)?;
            let key = proxy.data().join("fleet.key");
            fs::write(&key, KEY).map_err(|error| error.to_string())?;
            join(&proxy, &etcd, &key.display().to_string())?;
            proxies.push(proxy);
        }
        for proxy in &proxies {
            let sql = "SELECT COUNT(DISTINCT proxy) FROM stats_millrace_fleet";
            soon("3\n", || proxy.admin(sql))?;
        }
        Ok(Self {
            proxies,
            etcd,
            server,
        })
    }

    fn on_all(&self, sql: &str, wanted: &str) -> Outcome {
        self.proxies
            .iter()
            .try_for_each(|proxy| on(proxy, sql, wanted))
    }
}

fn join(proxy: &Proxy, etcd: &Etcd, key: &str) -> Outcome {
    let store = etcd.store();
    proxy
        .admin(&format!(
            "SET admin-cluster_store = '{store}'; SET admin-cluster_key_file = '{key}'; \
             LOAD ADMIN VARIABLES TO RUNTIME; SAVE ADMIN VARIABLES TO DISK"
        ))
        .map(drop)
}

/// The admin port says so soon; cores that are just told are waited for.
fn on(proxy: &Proxy, sql: &str, wanted: &str) -> Outcome {
    soon(wanted, || match proxy.admin(sql) {
        Ok(said) => Ok(said.trim().to_owned()),
        Err(error) if error.contains("try again") => Ok(error),
        Err(error) => Err(error),
    })
}

fn state(proxy: &Proxy, module: &str, wanted: &str) -> Outcome {
    let address = format!("%:{}", proxy.admin_port);
    let sql = format!(
        "SELECT state FROM stats_millrace_fleet WHERE module = '{module}' AND proxy LIKE '{address}'"
    );
    on(proxy, &sql, wanted)
}

fn rule(id: u32) -> String {
    format!(
        "INSERT INTO mysql_query_rules (rule_id, active, match_digest) VALUES ({id}, 1, 'never{id}'); \
         LOAD MYSQL QUERY RULES TO RUNTIME"
    )
}

const RULES: &str =
    "SELECT GROUP_CONCAT(rule_id) FROM (SELECT rule_id FROM runtime_mysql_query_rules ORDER BY 1)";

const ROUTES: usize = 200_000;

fn one_for_all(driver: Driver) -> Outcome {
    let fleet = Fleet::start(driver)?;
    let [one, two, three] = &fleet.proxies[..] else {
        return Err("there are three".into());
    };
    one.admin(&rule(1))?;
    let begun = Instant::now();
    fleet.on_all(RULES, "1")?;
    eprintln!(
        "{driver}: a rule was everywhere after {:?}",
        begun.elapsed()
    );
    expect(
        one.says("mysql_query_rules: in force on 3 of 3 proxies"),
        || one.log(),
    )?;
    two.admin(&rule(2))?;
    fleet.on_all(RULES, "1,2")?;
    for proxy in &fleet.proxies {
        state(proxy, "mysql_query_rules", "in force")?;
        same(&proxy.query("SELECT 7")?, "7")?;
    }
    // What belongs to one proxy stays its own.
    let ports = "SELECT COUNT(*) FROM runtime_global_variables WHERE variable_name = 'mysql-interfaces' AND variable_value LIKE '%:";
    three.admin("SET mysql-max_connections = 4321; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let sql = "SELECT variable_value FROM runtime_global_variables WHERE variable_name = 'mysql-max_connections'";
    fleet.on_all(sql, "4321")?;
    for proxy in &fleet.proxies {
        on(proxy, &format!("{ports}{}%'", proxy.port), "1")?;
    }
    three.admin(&format!(
        "INSERT INTO mysql_query_rules_fast_routing (username, schemaname, flagIN, destination_hostgroup, comment) \
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROUTES}) \
         SELECT 'app', 'shard_' || i, 7, i % 2, '' FROM n; LOAD MYSQL QUERY RULES TO RUNTIME"
    ))?;
    let begun = Instant::now();
    let count = "SELECT COUNT(*) FROM runtime_mysql_query_rules_fast_routing";
    fleet.on_all(count, &ROUTES.to_string())?;
    eprintln!(
        "{driver}: {ROUTES} routes were everywhere after {:?}",
        begun.elapsed()
    );
    let history = one.admin("SHOW FLEET HISTORY")?;
    let has = |generation: &str| history.contains(&format!("mysql_query_rules\t{generation}\t"));
    expect(has("1") && has("2") && has("3"), || history.clone())?;
    one.admin("FLEET ROLLBACK mysql_query_rules TO 1")?;
    fleet.on_all(RULES, "1")?;
    fleet.on_all(count, "0")?;
    let refused = one.admin("FLEET ROLLBACK mysql_query_rules TO 99");
    let is_told = |why: String| why.contains("keeps no generation 99");
    expect(refused.is_err_and(is_told), String::new)?;
    // Whoever joins has what all have, and the log says what it had instead.
    let late = Proxy::start(driver, &Wish::in_front_of(&fleet.server))?;
    late.admin(&rule(50))?;
    let key = fleet.proxies[0].data().join("fleet.key");
    join(&late, &fleet.etcd, &key.display().to_string())?;
    on(&late, RULES, "1")?;
    let words = "mysql_query_rules: 1 rows here differ";
    expect(late.says(words), || late.log())
}

fn two_at_once(driver: Driver) -> Outcome {
    let fleet = Fleet::start(driver)?;
    let mut slower = 0;
    for turn in 0..8 {
        let said: Vec<_> = thread::scope(|scope| {
            let load = |nth: usize| {
                let (id, proxy) = (100 + turn * 2 + nth as u32, &fleet.proxies[nth]);
                scope.spawn(move || (id, proxy.admin(&rule(id))))
            };
            let both = [load(0), load(1)];
            both.map(|one| one.join().expect("it says so")).into()
        });
        let won: Vec<_> = said.iter().filter(|(_, said)| said.is_ok()).collect();
        expect(!won.is_empty(), || format!("{said:?}"))?;
        for (_, lost) in &said {
            let Err(why) = lost else { continue };
            slower += 1;
            expect(
                why.contains("LOAD again") || why.contains("taken over"),
                || why.clone(),
            )?;
        }
        let wanted = fleet.proxies[2].admin(
            "SELECT MAX(truth) FROM stats_millrace_fleet WHERE module = 'mysql_query_rules'",
        )?;
        // All have the same rows; each winner's is among them or was replaced by a LOAD of who had
        // seen it.
        let rows = || {
            let all = fleet.proxies.iter().map(|proxy| proxy.admin(RULES));
            let all: Vec<_> = all.collect::<Result<_, _>>().or_else(|why| {
                if why.contains("try again") {
                    Ok(vec![why])
                } else {
                    Err(why)
                }
            })?;
            let is_one = all.len() == 3 && all.iter().all(|rows| *rows == all[0]);
            Ok(if is_one {
                "the same".into()
            } else {
                format!("{all:?}")
            })
        };
        soon("the same", rows).map_err(|why| format!("{why}: {wanted}"))?;
        if let [(id, _)] = won[..] {
            let found = fleet.proxies[2].admin(RULES)?;
            expect(found.contains(&id.to_string()), || {
                format!("{found}: not {id}")
            })?;
        }
        for proxy in &fleet.proxies {
            // What was edited and lost is told once.
            let _once = proxy.admin("LOAD MYSQL QUERY RULES TO RUNTIME");
        }
    }
    eprintln!("{driver}: {slower} of 16 were slower");
    expect(slower > 0, || "nobody was ever slower".into())
}

/// Clients ask without pause; every answer has to come.
fn with_traffic(proxy: &Proxy, body: impl FnOnce() -> Outcome) -> Outcome {
    let (over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let clients = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                same(&proxy.query("SELECT 41 + 1; SELECT 2")?, "42\n2")?;
                asked.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, String>(())
        });
        let outcome = body();
        over.store(true, Ordering::Relaxed);
        clients.join().map_err(|_| "clients ended")??;
        outcome
    })?;
    expect(asked.into_inner() > 10, || "hardly a statement".into())
}

/// Loads a rule, as soon as the store is heard again. What was refused is still edited: an INSERT of
/// the same rule would be refused for that.
fn load_when_it_answers(proxy: &Proxy, id: u32) -> Outcome {
    soon("done", || {
        let again = format!("DELETE FROM mysql_query_rules WHERE rule_id = {id}");
        let said = proxy.admin(&format!("{again}; {}", rule(id)));
        Ok(said.map_or_else(|why| why, |_| "done".to_owned()))
    })
}

fn deaths(driver: Driver) -> Outcome {
    let Fleet {
        mut proxies,
        mut etcd,
        server: _server,
    } = Fleet::start(driver)?;
    let mut last = proxies.pop().ok_or("there are three")?;
    let [one, two] = &proxies[..] else {
        return Err("there are two more".into());
    };
    with_traffic(one, || {
        one.admin(&rule(1))?;
        etcd.kill(0);
        load_when_it_answers(two, 2)?;
        for proxy in [one, two, &last] {
            on(proxy, RULES, "1,2")?;
        }
        etcd.kill_all();
        let refused = one
            .admin(&rule(3))
            .err()
            .ok_or("it is loaded without etcd")?;
        expect(refused.contains("LOCAL is for this proxy only"), || {
            refused.clone()
        })?;
        on(one, RULES, "1,2")?;
        one.admin("LOAD MYSQL QUERY RULES TO RUNTIME LOCAL")?;
        on(one, RULES, "1,2,3")?;
        state(one, "mysql_query_rules", "diverged")?;
        on(two, RULES, "1,2")?;
        // A proxy dies, and starts without etcd: it serves at once from disk.
        last.restart()?;
        same(&last.query("SELECT 7")?, "7")?;
        expect(last.says("this proxy is alone from now on"), || last.log())?;
        etcd.begin()?;
        on(&last, RULES, "1,2")?;
        state(one, "mysql_query_rules", "diverged")?;
        on(one, RULES, "1,2,3")?;
        load_when_it_answers(two, 4)?;
        for proxy in [one, two, &last] {
            on(proxy, RULES, "1,2,4")?;
            state(proxy, "mysql_query_rules", "in force")?;
        }
        Ok(())
    })
}

fn wiped(driver: Driver) -> Outcome {
    let Fleet {
        mut proxies,
        mut etcd,
        server: _server,
    } = Fleet::start(driver)?;
    for id in [1, 2] {
        proxies[0].admin(&rule(id))?;
    }
    for proxy in &proxies {
        on(proxy, RULES, "1,2")?;
        state(proxy, "mysql_query_rules", "in force")?;
        proxy.admin("SAVE MYSQL QUERY RULES TO DISK")?;
    }
    etcd.wipe()?;
    proxies[2].kill();
    etcd.begin()?;
    proxies[2].restart()?;
    for proxy in &proxies {
        state(proxy, "mysql_query_rules", "gone")?;
        on(proxy, RULES, "1,2")?;
        expect(proxy.says("has none any more"), || proxy.log())?;
    }
    proxies[2].admin(&rule(3))?;
    for proxy in &proxies {
        on(proxy, RULES, "1,2,3")?;
        state(proxy, "mysql_query_rules", "in force")?;
    }
    let history = proxies[0].admin("SHOW FLEET HISTORY")?;
    expect(history.contains("mysql_query_rules\t3\t"), || {
        history.clone()
    })
}

fn sealed(driver: Driver) -> Outcome {
    let fleet = Fleet::start(driver)?;
    let [one, two, _] = &fleet.proxies[..] else {
        return Err("there are three".into());
    };
    let user = |name: &str| {
        format!(
            "INSERT INTO mysql_users (username, password) VALUES ('{name}', 'hush-hush'); LOAD MYSQL USERS TO RUNTIME"
        )
    };
    let has = |name: &str| {
        format!("SELECT COUNT(*) > 0 FROM runtime_mysql_users WHERE username = '{name}'")
    };
    one.admin(&user("new"))?;
    fleet.on_all(&has("new"), "1")?;
    // Without the key: nothing of it is taken, nothing is written, and it is told.
    two.admin("SET admin-cluster_key_file = ''; LOAD ADMIN VARIABLES TO RUNTIME")?;
    one.admin(&user("newer"))?;
    state(two, "mysql_users", "behind")?;
    expect(two.says("admin-cluster_key_file is not set here"), || {
        two.log()
    })?;
    on(two, &has("newer"), "0")?;
    let refused = two
        .admin(&user("own"))
        .err()
        .ok_or("it is in the store in clear")?;
    expect(refused.contains("set admin-cluster_key_file"), || {
        refused.clone()
    })?;
    expect(!refused.contains("hush-hush"), || refused.clone())?;
    expect(
        one.says("mysql_users: in force on 2 of 3 proxies, not yet on"),
        || one.log(),
    )?;
    Ok(())
}

/// An etcd that talks to clients over TLS only, and to those only that show a certificate.
fn over_tls(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let etcd = Etcd::start_secure(1)?;
    let wish = Wish::in_front_of(&server);
    let proxies = [Proxy::start(driver, &wish)?, Proxy::start(driver, &wish)?];
    let store = etcd.store();
    let (plain, files) = store.split_once('?').ok_or("a store with files is meant")?;
    let set = |proxy: &Proxy, store: &str| {
        proxy.admin(&format!(
            "SET admin-cluster_store = '{store}'; LOAD ADMIN VARIABLES TO RUNTIME"
        ))
    };
    // What cannot be used is told before it is in force.
    let refused = set(&proxies[0], &format!("{plain}?ca=/nowhere/ca.pem"));
    expect(
        refused.as_ref().is_err_and(|words| {
            words.contains("the file of authorities '/nowhere/ca.pem' cannot be used")
        }),
        || format!("{refused:?}"),
    )?;
    // An authority that has not signed, and no certificate of ours: nobody joins.
    let stranger = files.replacen(
        &etcd.file("ca.pem"),
        &server.tls_file("ca.pem").display().to_string(),
        1,
    );
    for files in [stranger, format!("ca={}", etcd.file("ca.pem"))] {
        set(&proxies[0], &format!("{plain}?{files}"))?;
        let said = proxies[0].admin(&rule(1));
        expect(said.is_err(), || format!("{files}: {said:?}"))?;
    }
    for proxy in &proxies {
        set(proxy, &store)?;
    }
    soon("2\n", || {
        proxies[0].admin("SELECT COUNT(DISTINCT proxy) FROM stats_millrace_fleet")
    })?;
    proxies[1].admin(&rule(2))?;
    on(&proxies[0], RULES, "2")
}

/// A proxy that hangs may go on with a map of before the look-up.
fn look_up(driver: Driver) -> Outcome {
    let fleet = Fleet::start(driver)?;
    let [one, two, _] = &fleet.proxies[..] else {
        return Err("there are three".into());
    };
    fleet.server.root(
        "CREATE USER monitor@'%' IDENTIFIED BY 'monitor'; \
         GRANT SELECT, INSERT, UPDATE, CREATE, LOCK TABLES, TRIGGER ON conf.* TO monitor@'%'; USE conf; \
         CREATE TABLE users_default (nickname VARCHAR(30) PRIMARY KEY, email VARCHAR(60)); CREATE TABLE users_mar LIKE users_default; \
         INSERT INTO users_mar VALUES ('mary', 'm@x.y')",
    )?;
    one.admin("HSCALE SETUP_TABLE('users', 'nickname', 'users_default', 0, 'PREFIX(3)')")?;
    one.admin("HSCALE ADD_PARTITION('users', 'mar', 'mar', 0)")?;
    fleet.on_all("SELECT COUNT(*) FROM runtime_mysql_shard_partitions", "1")?;
    two.signal("STOP");
    one.admin("HSCALE ADD_LOOKUP('users', 'email', 0)")?;
    let fill = || one.admin("HSCALE FILL_LOOKUP('users', 'email')");
    let refused = fill();
    two.signal("CONT");
    let named = |words: &str| words.contains(&format!(":{}", two.admin_port));
    expect(matches!(&refused, Err(words) if named(words)), || {
        format!("{refused:?}")
    })?;
    let has_it = "SELECT COUNT(*) FROM runtime_mysql_shard_lookups WHERE state = ";
    fleet.on_all(&format!("{has_it}'FILLING'"), "1")?;
    // What the others have is told with their next word.
    soon("", || Ok(fill().err().unwrap_or_default()))?;
    fleet.on_all(&format!("{has_it}'READY'"), "1")?;
    let found = "SELECT nickname FROM conf.users WHERE email = 'm@x.y'";
    same(&two.query(found)?, "mary")
}
