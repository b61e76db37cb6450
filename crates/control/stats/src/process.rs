//! Numbers of the process, from the kernel and from the memory manager.

use tikv_jemalloc_ctl::{epoch, stats};

/// Clock ticks in a second, in `/proc`: Linux tells user programs this number on all that we run
/// on.
const TICKS: u64 = 100;

/// Bytes, as the memory manager counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) allocated: u64,
    pub(crate) resident: u64,
    pub(crate) active: u64,
    pub(crate) mapped: u64,
    pub(crate) metadata: u64,
    pub(crate) retained: u64,
}

impl Memory {
    /// All but `allocated`, by their names.
    pub(crate) const fn kinds(&self) -> [(&'static str, u64); 5] {
        [
            ("resident", self.resident),
            ("active", self.active),
            ("mapped", self.mapped),
            ("metadata", self.metadata),
            ("retained", self.retained),
        ]
    }
}

pub(crate) fn memory() -> Option<Memory> {
    // The numbers are of the moment when this is moved on.
    epoch::advance().ok()?;
    Some(Memory {
        allocated: stats::allocated::read().ok()? as u64,
        resident: stats::resident::read().ok()? as u64,
        active: stats::active::read().ok()? as u64,
        mapped: stats::mapped::read().ok()? as u64,
        metadata: stats::metadata::read().ok()? as u64,
        retained: stats::retained::read().ok()? as u64,
    })
}

/// Open descriptors.
pub(crate) fn descriptors() -> Option<u64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}

/// Ticks of the processor: those of the program, and those of the kernel for it.
pub(crate) fn cpu_ticks() -> Option<[u64; 2]> {
    ticks_in(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// Microseconds of the processor, likewise.
pub(crate) fn cpu_seconds() -> Option<[u64; 2]> {
    cpu_ticks().map(|both| both.map(|ticks| ticks * (1_000_000 / TICKS)))
}

/// <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>: fields 14 and 15. The second is a
/// name in parentheses that may have any character.
fn ticks_in(stat: &str) -> Option<[u64; 2]> {
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse().ok();
    Some([next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_confuses_nobody() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15";
        assert_eq!(ticks_in(stat), Some([11, 12]));
        assert_eq!(ticks_in("7 (a"), None);
    }
}
