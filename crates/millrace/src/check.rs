//! `--check`: what a first start would say of the configuration file, without a start.

use crate::flags::Flags;
use crate::start;
use std::process::ExitCode;

/// Prints warnings and errors to standard error, and the verdict to standard output.
pub(crate) fn run(flags: &Flags) -> ExitCode {
    let path = match start::configuration(flags) {
        Ok(Some(path)) => path,
        Ok(None) => {
            eprintln!("error: there is no configuration file to check: name one with -c FILE");
            return ExitCode::FAILURE;
        }
        Err(reasons) => {
            for reason in reasons {
                eprintln!("error: {reason}");
            }
            return ExitCode::FAILURE;
        }
    };
    let found = admin::check(&path);
    for warning in &found.warnings {
        eprintln!("warning: {warning}");
    }
    for error in &found.errors {
        eprintln!("error: {error}");
    }
    let (path, warnings) = (path.display(), counted(found.warnings.len(), "warning"));
    if found.errors.is_empty() {
        println!("{path} can be used: {warnings}");
        return ExitCode::SUCCESS;
    }
    let errors = counted(found.errors.len(), "error");
    println!("{path} cannot be used: {errors}, {warnings}");
    ExitCode::FAILURE
}

fn counted(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}
