//! Behind a load balancer that says for whom it speaks: the PROXY protocol, from who may say it and
//! from who may not.
#![forbid(unsafe_code)]

use std::io::{self, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy, Wish, command_line};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same};

type Outcome = Result<(), String>;

const V1: &[u8] = b"PROXY TCP4 192.0.2.7 10.0.0.1 51234 6033\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x08\x0a\0\0\x01\xc8\x22\x17\x91";
const V2_LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
/// The rule of these tests tells who it is for.
const WHO: &str = "SELECT 'who'";

fn main() {
    trials::run_on_both(&[
        (
            "a_header_names_the_client_for_rules_processlist_and_errors",
            named,
        ),
        (
            "a_header_that_is_broken_or_not_allowed_lets_nobody_in",
            refused,
        ),
        ("real_clients_come_in_behind_a_header", behind_a_balancer),
    ])
}

fn one(driver: Driver, networks: &str) -> Result<(Server, Proxy), String> {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(by_hand::CREATE_USER)?;
    let mut wish = Wish::in_front_of(&server);
    wish.add_open_user();
    wish.variables
        .push_str(&format!("    proxy_protocol_networks = \"{networks}\"\n"));
    let rule = |id: u8, address: &str| {
        format!(
            "{{ rule_id = {id}, active = 1, client_addr = \"{address}\", match_digest = \"^SELECT \\\\?$\", error_msg = \"rule {id}\", apply = 1 }}"
        )
    };
    wish.rules = format!("{},\n{}", rule(7, "192.0.2.7"), rule(8, "192.0.2.8"));
    let proxy = Proxy::start(driver, &wish)?;
    Ok((server, proxy))
}

fn said(preface: &[u8], proxy: &Proxy) -> Result<(Raw, String), String> {
    let (mut raw, answer) =
        Raw::log_in_after(proxy.port, preface).map_err(|error| error.to_string())?;
    expect(answer.first() == Some(&0), || {
        format!("not let in: {}", by_hand::complaint(&answer))
    })?;
    let words = match raw.ask(WHO) {
        Ok(_) => "no rule".to_owned(),
        Err(error) => error.to_string(),
    };
    Ok((raw, words))
}

fn named(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver, "10.0.0.0/8,127.0.0.0/8")?;
    for (preface, words, host) in [
        (V1, "rule 7", "192.0.2.7"),
        (V2, "rule 8", "192.0.2.8"),
        (V2_LOCAL, "no rule", "127.0.0.1"),
        (b"", "no rule", "127.0.0.1"),
    ] {
        let (raw, found) = said(preface, &proxy)?;
        expect(found.ends_with(words), || {
            format!("{found} instead of {words}")
        })?;
        let shown = proxy.admin(&format!(
            "SELECT cli_host FROM stats_mysql_processlist WHERE SessionID = {}",
            raw.id
        ))?;
        same(shown.trim(), host)?;
    }
    Ok(())
}

fn refused(driver: Driver) -> Outcome {
    let is_out = |proxy: &Proxy, preface: &[u8]| {
        let outcome = Raw::log_in_after(proxy.port, preface);
        let out = match &outcome {
            Ok((_, answer)) => answer.first() == Some(&0xff),
            Err(_) => true,
        };
        expect(out, || {
            format!("{} was let in", String::from_utf8_lossy(preface))
        })
    };
    let (_server, proxy) = one(driver, "127.0.0.1")?;
    is_out(&proxy, b"PROXY TCP4 somebody 10.0.0.1 51234 6033\r\n")?;
    is_out(&proxy, &[&V2[..12], b"\x21\x11\0\x01x"].concat())?;
    // Twice: the second is no login.
    is_out(&proxy, &[V1, V1].concat())?;
    expect(proxy.says("a PROXY header"), || proxy.log())?;
    proxy.admin(
        "SET mysql-proxy_protocol_networks = '192.0.2.0/24'; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    is_out(&proxy, V1)?;
    is_out(&proxy, V2)?;
    said(b"", &proxy)?;
    let wrong = proxy.admin(
        "SET mysql-proxy_protocol_networks = '192.0.2.0/33'; LOAD MYSQL VARIABLES TO RUNTIME",
    );
    expect(
        wrong
            .as_ref()
            .is_err_and(|words| words.contains("must be a list of networks")),
        || format!("{wrong:?}"),
    )
}

/// Says the header to the proxy for every client, and relays.
fn balancer(to: u16, header: &'static [u8]) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(mut server) = TcpStream::connect(("127.0.0.1", to)) else {
                return;
            };
            let _ = server.write_all(header);
            if let (Ok(from), Ok(into)) = (client.try_clone(), server.try_clone()) {
                thread::spawn(move || pipe(from, into));
            }
            thread::spawn(move || pipe(server, client));
        }
    });
    Ok(port)
}

fn pipe(mut from: TcpStream, mut into: TcpStream) {
    let _ = io::copy(&mut from, &mut into);
    let _ = into.shutdown(Shutdown::Write);
}

fn behind_a_balancer(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver, "*")?;
    for (header, words) in [(V1, "rule 7"), (V2, "rule 8")] {
        let port = balancer(proxy.port, header).map_err(|error| error.to_string())?;
        for options in [
            &["--skip-ssl"][..],
            &["--ssl"],
            &["--skip-ssl", "--compress"],
        ] {
            let outcome = command_line(port, "app", "secret", options, WHO);
            expect(
                outcome.as_ref().is_err_and(|said| said.contains(words)),
                || format!("{options:?}: {outcome:?} instead of {words}"),
            )?;
        }
        let wrong = command_line(port, "app", "wrong", &["--skip-ssl"], "SELECT 1");
        expect(
            wrong
                .as_ref()
                .is_err_and(|said| said.contains("@'192.0.2.")),
            || format!("{wrong:?}"),
        )?;
    }
    Ok(())
}
