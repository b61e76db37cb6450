//! COM_STATISTICS: a line of the proxy's own numbers.

use crate::core::Core;
use bridge::Counter;

/// Returns the answer to COM_STATISTICS, in a server's words: this core's own numbers.
pub(crate) fn in_a_line(core: &Core) -> String {
    let counts = core.tally.counts();
    let (questions, slow) = (
        counts.value(Counter::Questions),
        counts.value(Counter::SlowQueries),
    );
    let up = (core.rt.now() - core.began).as_secs();
    let per_second = questions as f64 / up.max(1) as f64;
    let threads = core.roster.len();
    // MariaDB does not count those.
    let flushes = if core.epoch().claims_mariadb() {
        ""
    } else {
        "Flush tables: 0  "
    };
    format!(
        "Uptime: {up}  Threads: {threads}  Questions: {questions}  Slow queries: {slow}  Opens: 0  {flushes}Open tables: 0  \
         Queries per second avg: {per_second:.3}"
    )
}
