//! A start in the background: whoever starts us waits until clients are served.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time that a start may take.
const SERVES_WITHIN: Duration = Duration::from_secs(60);

/// Starts this program again behind the terminal, with this in its environment, and waits until it
/// serves or has failed.
///
/// # Errors
/// The reason why it does not serve.
pub fn put_behind(
    errorlog: &Path,
    pidfile: &Path,
    (name, value): (&str, &str),
) -> Result<(), String> {
    let one = |error: io::Error| format!("cannot start in the background: {error}; use -f");
    let log = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(errorlog)
        .map_err(one)?;
    // One of before would look like success.
    let _none = fs::remove_file(pidfile);
    let mut child = Command::new(std::env::current_exe().map_err(one)?)
        .args(std::env::args_os().skip(1))
        .env(name, value)
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(one)?)
        .stderr(log)
        .process_group(0)
        .spawn()
        .map_err(one)?;
    let begun = Instant::now();
    while begun.elapsed() < SERVES_WITHIN {
        if let Some(status) = child.try_wait().map_err(one)? {
            return Err(format!(
                "it ended at once ({status}); {} has the reason",
                errorlog.display()
            ));
        }
        if pidfile.exists() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err(format!(
        "it does not serve after a minute; see {}",
        errorlog.display()
    ))
}
