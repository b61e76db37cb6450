//! A byte relay that knows nothing of MySQL: the least that a proxy on this runtime can cost. Our
//! benchmarks compare Millrace and its peers with it.
//!
//! `relay --listen 127.0.0.1:7000 --target 127.0.0.1:3306 [--io-driver auto|uring|epoll] [--threads
//! 1] [--repeat "SELECT c"]`
//!
//! With `--repeat` it is the least that a cache can cost: a COM_QUERY that begins so gets what the
//! server said to the client last, byte by byte, once it has said something to a few of them;
//! nothing is looked up.
#![allow(clippy::print_stderr, reason = "a program for the command line")]

use rt::{Address, Driver, Either, ListenOptions, Rt, Socket, select};
use std::process::ExitCode;
use std::rc::Rc;

struct Arguments {
    listen: Address,
    target: Address,
    driver: Driver,
    threads: usize,
    repeat: Option<String>,
}

/// So many of the queries to be repeated are asked for first, so that what is repeated is an answer
/// to one.
const ASKED_FIRST: u32 = 4;

fn arguments() -> Result<Arguments, String> {
    let (mut listen, mut target, mut driver, mut threads) = (None, None, Driver::Auto, 1);
    let mut repeat = None;
    let mut words = std::env::args().skip(1);
    while let Some(name) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("{name} wants a value"))?;
        match name.as_str() {
            "--listen" => listen = Some(value.parse().map_err(|e| format!("{e}"))?),
            "--target" => target = Some(value.parse().map_err(|e| format!("{e}"))?),
            "--io-driver" => driver = value.parse().map_err(|e| format!("{e}"))?,
            "--threads" => {
                threads = value
                    .parse()
                    .map_err(|_| format!("`{value}` is no number of threads"))?
            }
            "--repeat" => repeat = Some(value),
            _ => return Err(format!("`{name}` is not known")),
        }
    }
    Ok(Arguments {
        listen: listen.ok_or("--listen is missing")?,
        target: target.ok_or("--target is missing")?,
        driver,
        threads,
        repeat,
    })
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => Rc::new(arguments),
        Err(why) => {
            eprintln!("relay: {why}");
            return ExitCode::FAILURE;
        }
    };
    let (driver, why) = rt::choose(arguments.driver);
    eprintln!(
        "relay: {} -> {}, driver {driver} ({why})",
        arguments.listen, arguments.target
    );
    let threads: Vec<_> = (0..arguments.threads)
        .map(|_| {
            let (listen, target, repeat) = (
                arguments.listen.clone(),
                arguments.target.clone(),
                arguments.repeat.clone(),
            );
            std::thread::spawn(move || rt::run(driver, |rt| serve(rt, listen, target, repeat)))
        })
        .collect();
    for thread in threads {
        if let Ok(Ok(Err(e)) | Err(e)) = thread.join() {
            eprintln!("relay: {e}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

async fn serve(
    rt: Rt,
    listen: Address,
    target: Address,
    repeat: Option<String>,
) -> std::io::Result<()> {
    // A COM_QUERY (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query.html)
    // behind its header.
    let repeat: Option<Rc<[u8]>> = repeat.map(|text| [b"\x03", text.as_bytes()].concat().into());
    let listener = rt.listen(
        &listen,
        ListenOptions {
            reuse_port: true,
            ..ListenOptions::default()
        },
    )?;
    loop {
        let client = listener.accept().await?;
        let (rt2, target, repeat) = (rt.clone(), target.clone(), repeat.clone());
        rt.spawn(async move {
            match rt2.connect(&target).await {
                Ok(server) => relay(&client, &server, repeat.as_deref()).await,
                Err(e) => eprintln!("relay: {target}: {e}"),
            }
        });
    }
}

/// Both directions in one task, until one side ends.
async fn relay(client: &Socket, server: &Socket, repeat: Option<&[u8]>) {
    let (mut last, mut asked) = (Vec::new(), 0);
    loop {
        let (bytes, to) = match select(client.recv(), server.recv()).await {
            Either::Left(bytes) => (bytes, server),
            Either::Right(bytes) => (bytes, client),
        };
        let Ok(bytes) = bytes else { return };
        if let Some(repeat) = repeat {
            if std::ptr::eq(to, client) {
                last.clear();
                last.extend_from_slice(&bytes);
            } else if bytes
                .get(4..)
                .is_some_and(|command| command.starts_with(repeat))
            {
                asked += 1;
                if asked > ASKED_FIRST {
                    if client.send(last.clone()).await.is_err() {
                        return;
                    }
                    continue;
                }
            }
        }
        if bytes.is_empty() || to.send(bytes).await.is_err() {
            return;
        }
    }
}
