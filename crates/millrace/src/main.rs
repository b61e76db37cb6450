//! main(): flags, wiring, signals. It knows everybody and decides nothing.
#![forbid(unsafe_code)]

mod check;
mod flags;
mod manual;
mod start;

use clap::Parser;
use events::Unshown;
use flags::{Flags, Instead, OfScript};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// See decision 0021.
#[global_allocator]
static MEMORY: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let flags = Flags::parse();
    if flags.version {
        println!("Millrace version {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    if flags.check {
        return check::run(&flags);
    }
    let done = match &flags.instead.clone() {
        Some(Instead::Events { files }) => show_events(files).map_err(|reason| vec![reason]),
        Some(Instead::Script { what }) => with_scripts(what),
        Some(Instead::Health { port, live }) => process::ask_health(*port, *live)
            .map(|words| println!("{words}"))
            .map_err(|reason| vec![reason]),
        Some(Instead::Top(wish)) => {
            let password = std::env::var("MYSQL_PWD").ok();
            top::run(wish.clone(), password, io::stdout()).map_err(|reason| vec![reason])
        }
        Some(Instead::BinlogReader(wish)) => {
            let environment = |name: &str| std::env::var(name).ok();
            reader::run(wish, &environment).map_err(|reason| vec![reason])
        }
        Some(Instead::Proxy(own)) => Flags::of_mysql_proxy(own).and_then(start::run),
        Some(Instead::Manual { kind }) => manual::print(*kind).map_err(|reason| vec![reason]),
        None => start::run(flags),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reasons) => {
            for reason in reasons {
                eprintln!("millrace: {reason}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Looks scripts through, or runs their tests.
fn with_scripts(what: &OfScript) -> Result<(), Vec<String>> {
    let mut world = script::cli::World {
        read: &|path| std::fs::read_to_string(path).map_err(script::cli::unread),
        say: &mut |line| println!("{line}"),
    };
    match what {
        OfScript::Check { files } => script::cli::check(files, &mut world),
        OfScript::Test { files, coverage } => script::cli::test(files, *coverage, &mut world),
    }
}

/// Stops at the first file that cannot be shown to its end.
fn show_events(files: &[PathBuf]) -> Result<(), String> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for path in files {
        let shown = if path.as_os_str() == "-" {
            events::show(io::stdin().lock(), &mut out)
        } else {
            let file = File::open(path)
                .map_err(|error| Unshown::Because(format!("cannot be read: {error}")));
            file.and_then(|file| events::show(file, &mut out))
        };
        match shown {
            Ok(()) => {}
            Err(Unshown::Unwanted) => break,
            Err(Unshown::Because(words)) => return Err(format!("{}: {words}", path.display())),
        }
    }
    Ok(())
}
