//! LOAD DATA LOCAL INFILE, as servers do it: they ask for the file and read it to its end, whatever
//! they think of it.
//!
//! ```text
//! LOAD DATA LOCAL INFILE 'tag' INTO TABLE log        one line in the log: the tag, and what the file was
//! LOAD DATA LOCAL INFILE 'tag' INTO TABLE picky      an error when the file is there
//! LOAD DATA LOCAL INFILE 'tag' INTO TABLE nowhere    an error at once
//! ```

use super::{Guest, PACKET_LEN_MAX, flags, written};
use crate::mind::{Complaint, Mind};
use net::{Conn, NetError};
use std::time::Duration;
use wire::caps::Caps;
use wire::ok;
use wire::packet;
use wire::resultset::Writer;

pub(crate) const LOAD: &str = "LOAD DATA LOCAL INFILE ";
/// The first byte of what asks for a file.
pub(crate) const FILE_HEADER: u8 = 0xFB;
/// No table; a row that does not fit.
pub(crate) const NO_TABLE: u16 = 1146;
pub(crate) const NO_FIT: u16 = 1366;

/// Returns the line that a file leaves in the log: it is another if a byte is another, missing or
/// there twice.
pub(crate) fn line(tag: &str, file: &[u8]) -> String {
    let fnv = file.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    });
    format!("{tag} {} bytes {fnv:016x}", file.len())
}

impl Guest {
    /// The whole command. False when the connection ends here.
    pub(super) async fn load(
        &mut self,
        conn: &mut Conn,
        mind: &mut Mind,
        text: &str,
        caps: Caps,
        seq: u8,
    ) -> Result<bool, NetError> {
        self.hears(text, mind);
        mind.has.begin(text);
        let (tag, table) = (
            text.split('\'').nth(1).unwrap_or_default(),
            text.rsplit(' ').next().unwrap_or_default(),
        );
        let mut last = seq;
        let mut said = Ok(());
        if table == "nowhere" {
            said = Err(Complaint(
                NO_TABLE,
                "Table 'nowhere' doesn't exist".to_owned(),
            ));
        } else {
            let mut asks = Vec::new();
            packet::append(
                &mut asks,
                &mut seq.wrapping_add(1),
                &[&[FILE_HEADER], tag.as_bytes()].concat(),
            );
            conn.send(asks).await?;
            let Some(file) = self.take_file(conn, &mut last).await? else {
                return Ok(false);
            };
            self.server.judge.hit("a file", 1);
            if self.order.statement.take() {
                said = Err(Complaint(
                    1317,
                    "Query execution was interrupted".to_owned(),
                ));
            } else if table == "picky" {
                said = Err(Complaint(
                    NO_FIT,
                    format!("Incorrect string value in {tag}"),
                ));
            } else {
                mind.insert(line(tag, &file), &mut self.server.ground.borrow_mut().log);
                self.server.date();
            }
        }
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, last, caps, flags(mind));
        match said {
            Ok(()) => {
                mind.has.row_count = 1;
                writer.ok(&ok::Ok {
                    affected: 1,
                    ..ok::Ok::default()
                });
            }
            Err(complaint) => {
                mind.has.fail(&complaint);
                writer.err(&written(&complaint));
            }
        }
        self.had.extend(mind.names());
        conn.send(out).await?;
        Ok(true)
    }

    /// A file to its end; none if this ends before.
    async fn take_file(&self, conn: &mut Conn, last: &mut u8) -> Result<Option<Vec<u8>>, NetError> {
        let mut file = Vec::new();
        *last = last.wrapping_add(1);
        loop {
            let packet = match rt::select(conn.packet(PACKET_LEN_MAX), self.told_to_end()).await {
                rt::Either::Left(packet) => packet?,
                rt::Either::Right(()) => {
                    self.must_be_left(conn).await;
                    return Ok(None);
                }
            };
            // Compressed, they are numbered as the frames are.
            let due = last.wrapping_add(1);
            let in_order = conn.compression().is_some() || packet.seq == due;
            let who = format!("server {}", self.server.name);
            self.server.judge.check(in_order, &who, || {
                format!("packet {} of a file, where {due} is due", packet.seq)
            });
            *last = packet.seq;
            if packet.payload().is_empty() {
                return Ok(Some(file));
            }
            file.extend_from_slice(packet.payload());
            if self.server.is_bored() {
                self.tell("has enough of the file");
                return Ok(None);
            }
            let slow = self.server.chance.borrow_mut().percent(15);
            if slow {
                let nap = self.server.chance.borrow_mut().below(3_000);
                self.server.rt.sleep(Duration::from_micros(nap)).await;
            }
        }
    }
}
