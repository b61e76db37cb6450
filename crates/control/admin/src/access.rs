//! Who may come in on the admin port, and where it may listen.

use crate::engine::View;
use config::is_known_to_everybody as is_known;
use config::{Refusal, Variables, credentials, interfaces};
use door::{Entry, Refused};
use rt::Address;
use std::net::{IpAddr, SocketAddr};
use wire::errors::Code;

/// Error of whoever may come from this machine only, as ProxySQL has it.
const LOCALLY: Code = Code {
    number: 1040,
    state: "42000",
};

/// Who may connect at a Unix socket of the admin port, as permission bits: only its owner while a
/// password is one that everybody knows.
pub fn socket_mode(variables: &Variables) -> u32 {
    let lists = [
        &variables.admin_admin_credentials,
        &variables.admin_stats_credentials,
    ];
    if lists.iter().any(|list| credentials(list).any(is_known)) {
        0o700
    } else {
        0o777
    }
}

/// Tells what a login of `user` needs. The user `admin`, and whose password everybody knows, come in
/// from this machine only.
pub(crate) fn entry(variables: &Variables, user: &str, peer: &Address) -> Entry {
    let of = |list| credentials(list).find(|(name, _)| *name == user);
    let admin = of(&variables.admin_admin_credentials);
    let Some(pair) = admin.or_else(|| of(&variables.admin_stats_credentials)) else {
        return Entry::Nobody;
    };
    let words = match is_local(peer) {
        true => None,
        false if is_known(pair) => Some(config::only_from_here(user)),
        false if user == "admin" && admin.is_some() => {
            Some(format!("User '{user}' can only connect locally"))
        }
        false => None,
    };
    match words {
        None => Entry::password(pair.1.to_owned()),
        Some(words) => Entry::Refuse(Refused::new(LOCALLY, words)),
    }
}

/// Tells what `user` sees.
pub(crate) fn view(variables: &Variables, user: &str) -> View {
    let is_admin = credentials(&variables.admin_admin_credentials).any(|(name, _)| name == user);
    if is_admin { View::Admin } else { View::Stats }
}

/// Warnings of [`only_here`].
///
/// # Errors
/// The variables name no administrator.
pub(crate) fn check(variables: &Variables) -> Result<Vec<Refusal>, Vec<Refusal>> {
    match nobody(variables) {
        Some(refusal) => Err(vec![refusal]),
        None => Ok(only_here(variables)),
    }
}

/// Where cores listen: for clients, and for operators whom scripts answer.
///
/// # Errors
/// A port cannot serve both.
pub fn traffic(variables: &Variables) -> Result<Vec<Address>, Vec<String>> {
    let mut all = door::listen::addresses(&variables.mysql_interfaces, "0.0.0.0:6033")?;
    for at in console_of(variables) {
        if all.contains(&at) {
            return Err(vec![format!(
                "mysql-script_console_ifaces and mysql-interfaces both have {at}: a port serves operators or clients"
            )]);
        }
        all.push(at);
    }
    Ok(all)
}

fn console_of(variables: &Variables) -> Vec<Address> {
    let all = interfaces(&variables.mysql_script_console_ifaces);
    all.filter_map(|at| at.parse().ok()).collect()
}

/// Tells why other proxies with these settings could not log in here: their user has to be one of
/// the administrators.
pub(crate) fn check_cluster(variables: &Variables) -> Option<Refusal> {
    let wanted = (
        &*variables.admin_cluster_username,
        &*variables.admin_cluster_password,
    );
    if wanted.0.is_empty()
        || credentials(&variables.admin_admin_credentials).any(|pair| pair == wanted)
    {
        return None;
    }
    let words = format!(
        "is '{}', and admin-admin_credentials does not have that user with admin-cluster_password: another proxy that has the same \
         variables cannot come in here",
        wanted.0
    );
    Some(Refusal {
        table: "global_variables",
        row: String::new(),
        column: "admin-cluster_username",
        words,
    })
}

/// Complaint about the place of a fleet's store, if there is one.
fn check_store(variables: &Variables) -> Option<Refusal> {
    let text = &*variables.admin_cluster_store;
    let words = match text.is_empty() {
        true => return None,
        false => match fleet::Place::parse(text) {
            Ok(place) => format!("cannot be used: {}", place.tls?.check().err()?),
            Err(words) => words,
        },
    };
    Some(Refusal {
        table: "global_variables",
        row: String::new(),
        column: "admin-cluster_store",
        words,
    })
}

/// Address of the web page, if it is served; or why it cannot be served there.
///
/// # Errors
/// The variables name no address.
pub fn web_address(variables: &Variables) -> Result<Option<SocketAddr>, Refusal> {
    if !variables.admin_web_enabled {
        return Ok(None);
    }
    let refusal = |column: &'static str, words: String| Refusal {
        table: "global_variables",
        row: column.into(),
        column,
        words,
    };
    let interface = variables.admin_web_interface.trim();
    let ip: IpAddr = interface.parse().map_err(|_| {
        let words = format!("is '{interface}', which is no address: use 127.0.0.1 or 0.0.0.0");
        refusal("admin-web_interface", words)
    })?;
    let port = u16::try_from(variables.admin_web_port).unwrap_or(0);
    if port == 0 {
        let words = "is 0, which nobody can connect to: use 6080".to_owned();
        return Err(refusal("admin-web_port", words));
    }
    Ok(Some(SocketAddr::new(ip, port)))
}

/// Refuses what a process that runs could not put into force.
pub(crate) fn check_now(variables: &Variables) -> Result<(), Vec<Refusal>> {
    if let Some(refusal) = check_store(variables) {
        return Err(vec![refusal]);
    }
    web_address(variables).map_err(|refusal| vec![refusal])?;
    Ok(())
}

/// For a start with what was saved, which must not fail: why no administrator can come in. The
/// credentials stay as they are.
pub(crate) fn at_start(variables: &Variables) -> Option<Refusal> {
    let until = "until then no administrator can come in, and a start with --reload and a configuration file is what says who may";
    nobody(variables).map(|refusal| Refusal {
        words: format!("{}; {until}", refusal.words),
        ..refusal
    })
}

/// Whether this is this machine.
fn is_local(address: &Address) -> bool {
    address
        .ip()
        .is_none_or(|ip| ip.to_canonical().is_loopback())
}

/// Complaint about credentials without an administrator.
fn nobody(variables: &Variables) -> Option<Refusal> {
    let mut all = credentials(&variables.admin_admin_credentials);
    let words = "names nobody: it must be user:password, separated by ';'";
    all.next()
        .is_none()
        .then(|| of_variable("admin-admin_credentials", words.to_owned()))
}

/// Words on each user whom others could not be where a port is open to them. The user `admin` is no
/// such user: it never can.
pub(crate) fn only_here(variables: &Variables) -> Vec<Refusal> {
    let Some((who_listens, at)) = open_to_others(variables) else {
        return Vec::new();
    };
    let admins = &variables.admin_admin_credentials;
    let stats = &variables.admin_stats_credentials;
    let of = |column: &'static str, list: &str| -> Vec<Refusal> {
        let known = credentials(list).filter(|pair| is_known(*pair) && pair.0 != "admin");
        let told = known.map(|(user, _)| {
            let words = format!(
                "has a password that everybody knows for '{user}': until it has another, '{user}' comes in from this machine only, \
                 although {who_listens} listens on {at}"
            );
            of_variable(column, words)
        });
        told.collect()
    };
    let mut all = of("admin-admin_credentials", admins);
    all.extend(of("admin-stats_credentials", stats));
    all
}

/// The first address that others can reach, and the variable that has it.
fn open_to_others(variables: &Variables) -> Option<(&'static str, Address)> {
    let listed = |name, list| {
        interfaces(list)
            .filter_map(|at| at.parse().ok())
            .find(|at| !is_local(at))
            .map(|at| (name, at))
    };
    let web = || match web_address(variables) {
        Ok(Some(at)) if !is_local(&Address::Tcp(at)) => {
            Some(("admin-web_interface", Address::Tcp(at)))
        }
        _ => None,
    };
    listed("admin-mysql_ifaces", &variables.admin_mysql_ifaces)
        .or_else(|| {
            let list = &variables.mysql_script_console_ifaces;
            listed("mysql-script_console_ifaces", list)
        })
        .or_else(web)
}

fn of_variable(column: &'static str, words: String) -> Refusal {
    Refusal {
        table: "global_variables",
        row: column.into(),
        column,
        words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_is_no_port_of_clients() {
        let at = |list: &str, credentials: &str| {
            let pairs = [
                ("mysql-script_console_ifaces", list),
                ("admin-admin_credentials", credentials),
            ];
            traffic(&variables(&pairs))
        };
        assert_eq!(at("", "admin:admin").unwrap().len(), 1);
        assert_eq!(at("127.0.0.1:4041", "admin:admin").unwrap().len(), 2);
        assert_eq!(at("0.0.0.0:4041", "op:secret").unwrap().len(), 2);
        let refused = at("127.0.0.1:1;0.0.0.0:6033", "op:x").unwrap_err();
        assert!(refused[0].contains("both have 0.0.0.0:6033"), "{refused:?}");
    }

    fn password(entry: &Entry) -> &str {
        match entry {
            Entry::User(credentials) => match &credentials[..] {
                [net::Credential::Clear(password)] => password,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        Variables::build(pairs.iter().copied()).unwrap().0
    }

    #[test]
    fn the_user_admin_comes_in_from_this_machine_only() {
        let variables = variables(&[("admin-admin_credentials", "admin:a;radmin:r")]);
        let local: Address = "127.0.0.1:1".parse().unwrap();
        let far: Address = "192.0.2.1:1".parse().unwrap();
        assert_eq!(password(&entry(&variables, "admin", &local)), "a");
        assert_eq!(
            password(&entry(&variables, "admin", &"/tmp/x".parse().unwrap())),
            "a"
        );
        assert!(matches!(entry(&variables, "admin", &far), Entry::Refuse(_)));
        assert_eq!(password(&entry(&variables, "radmin", &far)), "r");
        assert_eq!(password(&entry(&variables, "stats", &local)), "stats");
        assert!(matches!(entry(&variables, "nosuch", &local), Entry::Nobody));
        assert_eq!(
            (view(&variables, "radmin"), view(&variables, "stats")),
            (View::Admin, View::Stats)
        );
    }

    #[test]
    fn whose_password_everybody_knows_comes_in_from_this_machine_only() {
        let far: Address = "192.0.2.1:1".parse().unwrap();
        let mapped: Address = "[::ffff:127.0.0.1]:1".parse().unwrap();
        let own = [
            ("admin-admin_credentials", "a:x;b:"),
            ("admin-stats_credentials", "stats:stats;s:y"),
        ];
        let variables = variables(&own);
        for user in ["b", "stats"] {
            match entry(&variables, user, &far) {
                Entry::Refuse(refused) => assert!(
                    refused
                        .message
                        .contains("can only connect locally: everybody knows"),
                    "{refused:?}"
                ),
                other => panic!("{user}: {other:?}"),
            }
            assert!(
                matches!(entry(&variables, user, &mapped), Entry::User(_)),
                "{user}"
            );
        }
        assert_eq!(password(&entry(&variables, "a", &far)), "x");
        assert_eq!(password(&entry(&variables, "s", &far)), "y");
    }

    #[test]
    fn the_web_page_has_an_address() {
        let at = |interface| {
            let pairs = [
                ("admin-web_enabled", "true"),
                ("admin-web_interface", interface),
            ];
            match web_address(&variables(&pairs)) {
                Ok(address) => address.map_or_else(String::new, |at| at.to_string()),
                Err(refusal) => refusal.to_string(),
            }
        };
        assert_eq!(web_address(&Variables::default()), Ok(None));
        assert_eq!(at("0.0.0.0"), "0.0.0.0:6080");
        assert!(at("here").contains("which is no address"));
    }

    #[test]
    fn a_socket_is_its_owners_while_a_password_is_known() {
        let mode = |admin, stats| {
            socket_mode(&variables(&[
                ("admin-admin_credentials", admin),
                ("admin-stats_credentials", stats),
            ]))
        };
        assert_eq!(socket_mode(&Variables::default()), 0o700);
        assert_eq!(mode("admin:admin", "s:x"), 0o700);
        assert_eq!(mode("a:x; b:", "s:x"), 0o700);
        assert_eq!(mode("a:x;b:y", ""), 0o777);
    }

    #[test]
    fn a_port_that_others_can_reach_is_said_beside_each_known_password() {
        assert_eq!(check(&Variables::default()), Ok(Vec::new()));
        let said = |pairs: &[(&str, &str)]| {
            let said = check(&variables(pairs)).unwrap();
            said.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let open = ("admin-mysql_ifaces", "127.0.0.1:6032;0.0.0.0:6032");
        assert_eq!(
            said(&[open]),
            [
                "admin-stats_credentials has a password that everybody knows for 'stats': until it has another, 'stats' comes in from \
                 this machine only, although admin-mysql_ifaces listens on 0.0.0.0:6032"
            ]
        );
        let own = ("admin-admin_credentials", "a:x");
        let mine = ("admin-stats_credentials", "s:y");
        assert!(said(&[open, own, mine]).is_empty());
        let web = [("admin-web_enabled", "true"), ("admin-web_interface", "::")];
        let console = ("mysql-script_console_ifaces", "0.0.0.0:4041");
        for (pairs, name) in [
            (&web[..], "admin-web_interface"),
            (&[console], "mysql-script_console_ifaces"),
        ] {
            assert!(said(pairs)[0].contains(name), "{name}");
        }
    }

    #[test]
    fn credentials_that_name_nobody_are_refused_and_a_start_says_what_helps() {
        let nobody = variables(&[
            ("admin-admin_credentials", "root"),
            ("admin-stats_credentials", ""),
        ]);
        assert_eq!(check(&nobody).unwrap_err().len(), 1);
        let said = at_start(&nobody);
        assert!(
            matches!(&said, Some(one) if one.words.contains("until then no administrator can come in")),
            "{said:?}"
        );
    }
}
