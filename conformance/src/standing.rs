//! A programme that stays and takes orders: a line each, answered by lines up to [`END`] on both of
//! its outputs.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::watch::moves;

/// The line behind an answer.
const END: &str = "## end";

/// The programme. It ends when this is dropped, and by itself when nobody is there to give orders.
pub struct Standing {
    child: Child,
    orders: ChildStdin,
    /// Lines that the programme says, and those of its complaints, with their ends.
    said: [Receiver<String>; 2],
}

impl Standing {
    /// Starts it.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(mut command: Command) -> Result<Self, String> {
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|error| format!("{command:?} does not start: {error}"))?;
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(orders), Some(out), Some(err)) => Ok(Self {
                child,
                orders,
                said: [lines(out), lines(err)],
            }),
            _ => Err(format!("{command:?} has no pipes")),
        }
    }

    /// Gives an order, and the answer: first what it said, then its complaints.
    ///
    /// # Errors
    /// A programme that ended, or was silent for longer than `silence`; with all that it said.
    pub fn ask(&mut self, order: &str, silence: Duration) -> Result<String, String> {
        // An order that cannot be given is noticed by the end of what it says.
        let _gone = self
            .orders
            .write_all(format!("{order}\n").as_bytes())
            .and_then(|()| self.orders.flush());
        let mut words = String::new();
        let outcomes = [0, 1].map(|which| gather(&self.said[which], silence, &mut words));
        if outcomes.contains(&Err(RecvTimeoutError::Timeout)) {
            return Err(format!(
                "{words}\n(killed: it said nothing for {silence:?})\n"
            ));
        }
        match outcomes {
            [Ok(()), Ok(())] => Ok(words),
            _ => Err(format!("the client ended with an error:\n{words}")),
        }
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, said) = mpsc::channel();
    thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            if sender
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                return;
            }
            line.clear();
        }
    });
    said
}

fn gather(
    said: &Receiver<String>,
    silence: Duration,
    words: &mut String,
) -> Result<(), RecvTimeoutError> {
    loop {
        let line = said.recv_timeout(silence)?;
        moves();
        if line.trim_end() == END {
            return Ok(());
        }
        words.push_str(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_MOST: Duration = crate::watch::HANGS;

    fn shell(script: &str) -> Standing {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Standing::start(command).unwrap()
    }

    #[test]
    fn each_order_has_its_answer_with_the_complaints_behind() {
        let mut standing = shell(
            "while read -r order; do echo \"did $order\"; echo hm >&2; echo '## end'; echo '## end' >&2; done",
        );
        assert_eq!(standing.ask("this", AT_MOST).unwrap(), "did this\nhm\n");
        assert_eq!(standing.ask("that", AT_MOST).unwrap(), "did that\nhm\n");
    }

    #[test]
    fn who_ends_or_is_late_is_told_with_his_words() {
        let mut standing = shell("read -r order; echo first words; echo last words >&2");
        assert_eq!(
            standing.ask("this", AT_MOST).unwrap_err(),
            "the client ended with an error:\nfirst words\nlast words\n"
        );
        let mut standing = shell("echo first words; exec sleep 60");
        assert!(
            standing
                .ask("this", Duration::from_millis(300))
                .unwrap_err()
                .contains("killed")
        );
    }
}
