//! A name server of one name, for tests of names that move. It needs port 53 of an address of its
//! own, and a proxy that asks it: [`starter`] makes the script that starts one.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Answer to every question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// These addresses, for a second.
    At(&'static [Ipv4Addr]),
    /// That it has failed.
    Failed,
    /// Nothing.
    Nothing,
}

/// A server that runs until the process ends, and what it says.
#[derive(Debug, Clone)]
pub struct Dns {
    /// Where it is.
    pub at: Ipv4Addr,
    says: Arc<Mutex<Says>>,
}

impl Dns {
    /// Starts one.
    pub fn start(says: Says) -> io::Result<Self> {
        let at = own_address();
        let socket = UdpSocket::bind((at, 53))?;
        let says = Arc::new(Mutex::new(says));
        let own = Self { at, says };
        let server = own.clone();
        thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((len, from)) = socket.recv_from(&mut question) {
                if let Some(answer) = server.answer(&question[..len]) {
                    let _lost_as_any = socket.send_to(&answer, from);
                }
            }
        });
        Ok(own)
    }

    /// Says something else from now on.
    pub fn says(&self, says: Says) {
        *self.says.lock().unwrap_or_else(PoisonError::into_inner) = says;
    }

    // <https://www.rfc-editor.org/rfc/rfc1035#section-4>
    fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        const HEADER_LEN: usize = 12;
        let says = *self.says.lock().unwrap_or_else(PoisonError::into_inner);
        let name_len = question.get(HEADER_LEN..)?.iter().position(|b| *b == 0)? + 1;
        let end = HEADER_LEN + name_len + 4;
        let is_a = question.get(end - 4..end - 2)? == [0, 1];
        let (code, addresses) = match says {
            Says::At(addresses) => (0, if is_a { addresses } else { &[] }),
            Says::Failed => (2, &[][..]),
            Says::Nothing => return None,
        };
        let mut answer = question.get(..2)?.to_vec();
        // An answer, recursion wanted and had; one question, the answers, nothing else.
        let count = addresses.len() as u8;
        answer.extend([0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]);
        answer.extend(question.get(HEADER_LEN..end)?);
        for address in addresses {
            // The name of the question; A, IN, a second, four bytes.
            answer.extend([0xc0, HEADER_LEN as u8, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
            answer.extend(address.octets());
        }
        Some(answer)
    }
}

/// An address of this process alone.
fn own_address() -> Ipv4Addr {
    let [.., a, b] = process::id().to_be_bytes();
    Ipv4Addr::new(127, 53, a, b.max(1))
}

/// Why there can be no name server of a test here, if so.
#[must_use]
pub fn missing() -> Option<String> {
    if let Err(error) = UdpSocket::bind((own_address(), 53)) {
        return Some(format!("a name server: port 53: {error}"));
    }
    let may = Command::new("unshare").args(["-m", "true"]).output();
    let may = may.is_ok_and(|may| may.status.success());
    (!may).then(|| "no process may have files of its own in /etc here (unshare -m)".to_owned())
}

/// A script in this folder that starts a program which asks this name server and no other. Not every
/// machine lets a process have its own files in /etc.
pub fn starter(folder: &Path, dns: &Dns) -> Result<PathBuf, String> {
    let write = |name: &str, text: String| -> Result<PathBuf, String> {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| error.to_string())?;
        Ok(path)
    };
    let resolver = format!("nameserver {}\noptions timeout:1 attempts:1\n", dns.at);
    let resolver = write("resolv.conf", resolver)?;
    let order = write("nsswitch.conf", "hosts: files dns\n".to_owned())?;
    let inside = format!(
        "mount --bind {} /etc/resolv.conf && mount --bind {} /etc/nsswitch.conf && exec \"$0\" \"$@\"",
        resolver.display(),
        order.display()
    );
    let script = format!("#!/bin/sh\nexec unshare -m sh -c '{inside}' \"$@\"\n");
    let script = write("start.sh", script)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))
        .map_err(|error| error.to_string())?;
    Ok(script)
}
