//! Numbers of the process, from the kernel and from the memory manager.

use tikv_jemalloc_ctl::{epoch, stats};

/// Microseconds of a clock tick, as `times(2)` counts them: 100 in a second.
const TICK_US: u64 = 10_000;

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

/// Ticks of the processor: those of the program, and those of the kernel for it.
pub(crate) fn cpu_ticks() -> Option<[u64; 2]> {
    rt::cpu_us().map(|both| both.map(|us| us / TICK_US))
}
