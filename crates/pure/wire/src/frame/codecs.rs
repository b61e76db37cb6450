//! What packs and unpacks.

use super::Algorithm;
use crate::Malformed;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Operation as _};

/// A frame is not larger than 16 MiB unpacked, so nothing may refer to what is further back.
const ZSTD_WINDOW_LOG_MAX: u32 = 24;
/// Unpackers that have grown beyond this for a frame are not kept.
const KEPT_FRAME_MAX: usize = 1 << 20;
/// So much is packed to its end before anybody looks whether there is room for it.
const ENDED_ANYWAY_MAX: usize = 16 << 10;
/// So many unpackers of each kind are kept for the next frames.
const KEPT_MAX: usize = 4;

/// Packers and unpackers, lent to whoever has a frame in hand: each is large, and a silent
/// connection needs none.
#[derive(Default)]
pub struct Codecs {
    deflate: Vec<(i32, Compress)>,
    zstd: Option<(i32, zstd::bulk::Compressor<'static>)>,
    inflates: Vec<Decompress>,
    unzstds: Vec<zstd::stream::raw::Decoder<'static>>,
}

impl std::fmt::Debug for Codecs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Codecs({} + {} kept)",
            self.inflates.len(),
            self.unzstds.len()
        )
    }
}

impl Codecs {
    /// Packs into `room`; `None` if it does not get smaller.
    pub(super) fn pack(
        &mut self,
        algorithm: Algorithm,
        level: i32,
        plain: &[u8],
        room: &mut [u8],
    ) -> Option<usize> {
        match algorithm {
            Algorithm::Zlib => {
                let at = self
                    .deflate
                    .iter()
                    .position(|(of, _)| *of == level)
                    .unwrap_or_else(|| {
                        // -1 is the library's own choice.
                        let wanted = u32::try_from(level)
                            .map_or_else(|_| Compression::default(), Compression::new);
                        self.deflate.push((level, Compress::new(wanted, true)));
                        self.deflate.len() - 1
                    });
                let (_, deflate) = self.deflate.get_mut(at)?;
                deflate.reset();
                match deflate.compress(plain, room, FlushCompress::Finish) {
                    Ok(Status::StreamEnd) => usize::try_from(deflate.total_out()).ok(),
                    _ => {
                        if plain.len() > ENDED_ANYWAY_MAX {
                            // A reset does not make it forget that a block was open (zlib-rs 0.6 at
                            // level 1): the next frame would begin within it.
                            self.deflate.swap_remove(at);
                        }
                        None
                    }
                }
            }
            Algorithm::Zstd => {
                if self.zstd.as_ref().is_none_or(|(of, _)| *of != level) {
                    self.zstd = Some((level, zstd::bulk::Compressor::new(level).ok()?));
                }
                let (_, compressor) = self.zstd.as_mut()?;
                compressor.compress_to_buffer(plain, room).ok()
            }
        }
    }

    pub(super) fn lend(&mut self, algorithm: Algorithm) -> Result<Decoder, Malformed> {
        match algorithm {
            Algorithm::Zlib => {
                let mut inflate = self.inflates.pop().unwrap_or_else(|| Decompress::new(true));
                inflate.reset(true);
                Ok(Decoder::Zlib(inflate))
            }
            Algorithm::Zstd => {
                let fresh = || {
                    let mut decoder = zstd::stream::raw::Decoder::new()?;
                    decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX))?;
                    Ok::<_, std::io::Error>(decoder)
                };
                let mut decoder = match self.unzstds.pop() {
                    Some(kept) => kept,
                    None => fresh().map_err(|_| Malformed::new("zstd cannot begin"))?,
                };
                decoder
                    .reinit()
                    .map_err(|_| Malformed::new("zstd cannot begin"))?;
                Ok(Decoder::Zstd(Box::new(decoder)))
            }
        }
    }

    pub(super) fn take_back(&mut self, decoder: Decoder, frame_len: usize) {
        match decoder {
            Decoder::Zlib(inflate) if self.inflates.len() < KEPT_MAX => self.inflates.push(inflate),
            Decoder::Zstd(decoder)
                if self.unzstds.len() < KEPT_MAX && frame_len <= KEPT_FRAME_MAX =>
            {
                self.unzstds.push(*decoder)
            }
            _ => {}
        }
    }
}

pub(super) enum Decoder {
    Zlib(Decompress),
    Zstd(Box<zstd::stream::raw::Decoder<'static>>),
}

/// Result of one step of unpacking.
pub(super) struct Step {
    pub(super) used: usize,
    pub(super) made: usize,
    pub(super) ended: bool,
}

impl Decoder {
    pub(super) fn step(&mut self, input: &[u8], room: &mut [u8]) -> Result<Step, Malformed> {
        match self {
            Self::Zlib(inflate) => {
                let (read, made) = (inflate.total_in(), inflate.total_out());
                let status = inflate
                    .decompress(input, room, FlushDecompress::None)
                    .map_err(|_| Malformed::new("a compressed frame that is not zlib"))?;
                Ok(Step {
                    used: (inflate.total_in() - read) as usize,
                    made: (inflate.total_out() - made) as usize,
                    ended: matches!(status, Status::StreamEnd),
                })
            }
            Self::Zstd(decoder) => {
                let status = decoder
                    .run_on_buffers(input, room)
                    .map_err(|_| Malformed::new("a compressed frame that is not zstd"))?;
                // Before its first byte it asks for its header, which is more than nothing.
                Ok(Step {
                    used: status.bytes_read,
                    made: status.bytes_written,
                    ended: status.remaining == 0,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There are packers that do not forget all of a frame that they could not end.
    #[test]
    fn what_did_not_get_smaller_spoils_no_frame_after_it() {
        let mut random = 1u64;
        let mut byte = || {
            random = random
                .wrapping_mul(0x5851_F42D_4C95_7F2D)
                .wrapping_add(0x1405_7B7E_F767_814F);
            (random >> 56) as u8
        };
        let (noise, plain): (Vec<u8>, _) = (
            (0..64_000).map(|_| byte()).collect(),
            b"sacks of meal, ".repeat(9),
        );
        // At level 0 nothing gets smaller.
        for (algorithm, level) in [-1]
            .into_iter()
            .chain(1..=9)
            .map(|level| (Algorithm::Zlib, level))
            .chain((1..=22).map(|level| (Algorithm::Zstd, level)))
        {
            let mut codecs = Codecs::default();
            let mut room = vec![0; noise.len() - 1];
            for _ in 0..3 {
                assert_eq!(codecs.pack(algorithm, level, &noise, &mut room), None);
                let len = codecs.pack(algorithm, level, &plain, &mut room[..plain.len() - 1]);
                let mut back = vec![0; plain.len() + 1];
                let step = codecs
                    .lend(algorithm)
                    .and_then(|mut decoder| decoder.step(&room[..len.unwrap_or(0)], &mut back));
                assert!(
                    step.is_ok_and(|step| step.ended && back[..step.made] == plain),
                    "{algorithm:?} at level {level}"
                );
            }
        }
    }
}
