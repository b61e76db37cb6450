//! main(): flags, wiring, signals. It knows everybody and decides nothing.
#![forbid(unsafe_code)]

mod certificate;
mod flags;
mod folder;
mod log;
mod start;

use clap::Parser;
use flags::Flags;
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
    match start::run(&flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reasons) => {
            for reason in reasons {
                eprintln!("millrace: {reason}");
            }
            ExitCode::FAILURE
        }
    }
}
