//! Who may come in on the admin port, and where it may listen.

use crate::engine::View;
use config::{Refusal, Variables, credentials, interfaces};
use door::{Entry, Refused};
use rt::Address;
use std::net::{IpAddr, SocketAddr};
use wire::errors::Code;

/// The passwords that everybody knows.
const DEFAULTS: [&str; 2] = ["admin:admin", "stats:stats"];

/// Whether one of these credentials is known to everybody, or empty.
fn is_known(pair: &str) -> bool {
    DEFAULTS.contains(&pair) || pair.ends_with(':')
}

/// Who may connect at a Unix socket of the admin port, as permission bits: only its owner while a
/// password is one that everybody knows.
pub fn socket_mode(variables: &Variables) -> u32 {
    let lists = [
        &variables.admin_admin_credentials,
        &variables.admin_stats_credentials,
    ];
    if lists
        .iter()
        .any(|list| list.split(';').map(str::trim).any(is_known))
    {
        0o700
    } else {
        0o777
    }
}

/// Tells what a login of `user` needs.
pub(crate) fn entry(variables: &Variables, user: &str, peer: &Address) -> Entry {
    let password = |list| {
        credentials(list)
            .find(|(name, _)| *name == user)
            .map(|(_, password)| password.to_owned())
    };
    match (
        password(&variables.admin_admin_credentials),
        password(&variables.admin_stats_credentials),
    ) {
        (Some(_), _) if user == "admin" && !is_local(peer) => Entry::Refuse(Refused::new(
            Code {
                number: 1040,
                state: "42000",
            },
            format!("User '{user}' can only connect locally"),
        )),
        (Some(password), _) | (None, Some(password)) => Entry::password(password),
        (None, None) => Entry::Nobody,
    }
}

/// Tells what `user` sees.
pub(crate) fn view(variables: &Variables, user: &str) -> View {
    let is_admin = credentials(&variables.admin_admin_credentials).any(|(name, _)| name == user);
    if is_admin { View::Admin } else { View::Stats }
}

/// Refuses to listen where others can come, with a password that they know: where the next start
/// will listen.
pub(crate) fn check(variables: &Variables) -> Result<(), Vec<Refusal>> {
    let all: Vec<_> = interfaces(&variables.admin_mysql_ifaces)
        .filter_map(|at| at.parse().ok())
        .collect();
    check_for(variables, &all, "admin-mysql_ifaces listens")
}

/// Where cores listen: for clients, and for operators whom scripts answer.
///
/// # Errors
/// Others can come to those, with the password of an administrator that they know; or clients do.
pub fn traffic(variables: &Variables) -> Result<Vec<Address>, Vec<String>> {
    let mut all = door::listen::addresses(&variables.mysql_interfaces, "0.0.0.0:6033")?;
    let told = |refused: Vec<Refusal>| refused.iter().map(ToString::to_string).collect();
    check_console(variables).map_err(|refused| -> Vec<String> { told(refused) })?;
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

/// Refuses a console of scripts where others can come, with the password of an administrator that
/// they know.
pub(crate) fn check_console(variables: &Variables) -> Result<(), Vec<Refusal>> {
    let all = console_of(variables);
    let all: Vec<_> = all.iter().collect();
    let refused = known_where_others_come(variables, &all, "mysql-script_console_ifaces listens");
    let of_administrators = |refusal: &Refusal| refusal.column == "admin-admin_credentials";
    match refused.into_iter().find(of_administrators) {
        None => Ok(()),
        Some(refusal) => Err(vec![refusal]),
    }
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
/// The variables name no address, or one that others can reach while a password is known to them.
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
    let at = Address::Tcp(SocketAddr::new(ip, port));
    let who = "the web page (admin-web_interface) would listen";
    let refused = known_where_others_come(variables, &[&at], who);
    match refused.into_iter().next() {
        Some(refusal) => Err(refusal),
        None => Ok(Some(SocketAddr::new(ip, port))),
    }
}

/// As [`check`], for where this process listens already.
pub(crate) fn check_at(variables: &Variables, open: &[Address]) -> Result<(), Vec<Refusal>> {
    if let Some(refusal) = check_store(variables) {
        return Err(vec![refusal]);
    }
    web_address(variables).map_err(|refusal| vec![refusal])?;
    check_console(variables)?;
    check_for(
        variables,
        open,
        "the admin port listens, until the next start,",
    )
}

/// For a start with what was saved, which must not fail: where to listen instead, if others could
/// come with a password that everybody knows, and what is wrong. The credentials stay as they are,
/// be it that they let nobody in.
pub(crate) fn closed(variables: &Variables) -> (Option<String>, Vec<Refusal>) {
    let Err(refused) = check(variables) else {
        return (None, Vec::new());
    };
    let here = on_this_machine(&variables.admin_mysql_ifaces);
    let mut is_open = false;
    let told = refused.into_iter().map(|refusal| {
        let until = if refusal.words.starts_with(NOBODY) {
            "until then no administrator can come in, and a start with --reload and a configuration file is what says who may"
                .into()
        } else {
            is_open = true;
            format!("until then it listens on {here}")
        };
        Refusal { words: format!("{}; {until}", refusal.words), ..refusal }
    });
    let told = told.collect();
    (is_open.then_some(here), told)
}

/// Returns the ports of a list as they are for whoever is on this machine.
fn on_this_machine(list: &str) -> String {
    let mut all: Vec<String> = Vec::new();
    for text in interfaces(list) {
        let here = match text.parse() {
            Ok(at) if is_local(&at) => text.to_owned(),
            Ok(Address::Tcp(at)) => format!("127.0.0.1:{}", at.port()),
            _ => continue,
        };
        if !all.contains(&here) {
            all.push(here);
        }
    }
    all.join(";")
}

const NOBODY: &str = "names nobody";

/// Whether this is this machine.
fn is_local(address: &Address) -> bool {
    address
        .ip()
        .is_none_or(|ip| ip.to_canonical().is_loopback())
}

fn check_for(
    variables: &Variables,
    all: &[Address],
    who_listens: &str,
) -> Result<(), Vec<Refusal>> {
    let all: Vec<_> = all.iter().collect();
    let mut refused = known_where_others_come(variables, &all, who_listens);
    if credentials(&variables.admin_admin_credentials)
        .next()
        .is_none()
    {
        let column = "admin-admin_credentials";
        refused.push(Refusal {
            table: "global_variables",
            row: column.into(),
            column,
            words: format!("{NOBODY}: it must be user:password, separated by ';'"),
        });
    }
    match refused.is_empty() {
        true => Ok(()),
        false => Err(refused),
    }
}

/// Credentials that everybody knows, if one of these addresses is one that others can reach.
fn known_where_others_come(
    variables: &Variables,
    all: &[&Address],
    who_listens: &str,
) -> Vec<Refusal> {
    let Some(at) = all.iter().find(|address| !is_local(address)) else {
        return Vec::new();
    };
    let lists = [
        (
            "admin-admin_credentials",
            &variables.admin_admin_credentials,
        ),
        (
            "admin-stats_credentials",
            &variables.admin_stats_credentials,
        ),
    ];
    let known = lists.into_iter().filter_map(|(column, list)| {
        let pair = list.split(';').map(str::trim).find(|pair| is_known(pair))?;
        let user = pair.split(':').next().unwrap_or_default();
        let words = format!(
            "has a password that everybody knows for '{user}', while {who_listens} on {at}, where others can reach \
             it: choose another password, or listen on 127.0.0.1"
        );
        Some(Refusal {
            table: "global_variables",
            row: column.into(),
            column,
            words,
        })
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_is_no_port_of_clients_and_none_that_all_can_enter() {
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
        for (list, words) in [
            ("0.0.0.0:4041", "has a password that everybody knows"),
            ("127.0.0.1:1;0.0.0.0:6033", "both have 0.0.0.0:6033"),
        ] {
            let known = if list.contains(';') {
                "op:x"
            } else {
                "admin:admin"
            };
            let refused = at(list, known).unwrap_err();
            assert!(refused[0].contains(words), "{refused:?}");
        }
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
        assert_eq!(password(&entry(&variables, "stats", &far)), "stats");
        assert!(matches!(entry(&variables, "nosuch", &local), Entry::Nobody));
        assert_eq!(
            (view(&variables, "radmin"), view(&variables, "stats")),
            (View::Admin, View::Stats)
        );
    }

    #[test]
    fn the_web_page_is_served_to_others_only_behind_passwords_of_ones_own() {
        let at = |interface, credentials, stats| {
            let address = web_address(&variables(&[
                ("admin-web_enabled", "true"),
                ("admin-web_interface", interface),
                ("admin-admin_credentials", credentials),
                ("admin-stats_credentials", stats),
            ]));
            match address {
                Ok(address) => address.map_or_else(String::new, |at| at.to_string()),
                Err(refusal) => refusal.to_string(),
            }
        };
        assert_eq!(web_address(&Variables::default()), Ok(None));
        assert_eq!(
            at("127.0.0.1", "admin:admin", "stats:stats"),
            "127.0.0.1:6080"
        );
        assert_eq!(at("0.0.0.0", "a:x", "s:y"), "0.0.0.0:6080");
        for (credentials, stats) in [
            ("admin:admin", "s:y"),
            ("a:x", "stats:stats"),
            ("a:", "s:y"),
        ] {
            let said = at("0.0.0.0", credentials, stats);
            assert!(said.contains("a password that everybody knows"), "{said}");
        }
        assert!(at("here", "a:x", "s:y").contains("which is no address"));
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
    fn a_known_password_is_refused_where_others_can_reach_it() {
        assert_eq!(check(&Variables::default()), Ok(()));
        let open = [("admin-mysql_ifaces", "127.0.0.1:6032;0.0.0.0:6032")];
        let refused = check(&variables(&open)).unwrap_err();
        assert_eq!(refused.len(), 2);
        assert_eq!(
            refused[0].to_string(),
            "admin-admin_credentials has a password that everybody knows for 'admin', while admin-mysql_ifaces listens on \
             0.0.0.0:6032, where others can reach it: choose another password, or listen on 127.0.0.1"
        );
        let closed = [
            open[0],
            ("admin-admin_credentials", "a:x"),
            ("admin-stats_credentials", "s:y"),
        ];
        assert_eq!(check(&variables(&closed)), Ok(()));
    }

    #[test]
    fn a_known_password_is_refused_where_the_port_is_open_although_the_next_start_closes_it() {
        let local = [("admin-mysql_ifaces", "127.0.0.1:6032")];
        let open = |at: &str| {
            check_at(
                &variables(&local),
                &["127.0.0.1:6032".parse().unwrap(), at.parse().unwrap()],
            )
        };
        assert_eq!(open("/tmp/admin.sock"), Ok(()));
        let refused = open("0.0.0.0:6032").unwrap_err();
        assert!(
            refused[0]
                .to_string()
                .contains("listens, until the next start, on 0.0.0.0:6032, where others"),
            "{refused:?}"
        );
    }

    #[test]
    fn where_a_start_listens_instead_are_the_same_ports_of_this_machine() {
        for (wanted, here) in [
            ("0.0.0.0:6032", Some("127.0.0.1:6032")),
            (
                "192.0.2.1:7032; [::]:7032;/tmp/a.sock;127.0.0.1:7032;[::1]:8032",
                Some("127.0.0.1:7032;/tmp/a.sock;[::1]:8032"),
            ),
            ("127.0.0.1:6032;/tmp/a.sock", None),
        ] {
            let (instead, refused) = closed(&variables(&[("admin-mysql_ifaces", wanted)]));
            assert_eq!(
                (instead.as_deref(), refused.len()),
                (here, if here.is_some() { 2 } else { 0 }),
                "{wanted}"
            );
            assert!(refused.iter().all(|refusal| {
                refusal
                    .words
                    .ends_with(&format!("until then it listens on {}", here.unwrap()))
            }));
        }
        let nobody = [
            ("admin-admin_credentials", "root"),
            ("admin-stats_credentials", ""),
        ];
        let (instead, refused) = closed(&variables(&nobody));
        assert_eq!((instead, refused.len()), (None, 1), "{refused:?}");
        assert!(
            refused[0]
                .to_string()
                .contains("until then no administrator can come in"),
            "{refused:?}"
        );
    }
}
