//! Scripts of worlds that have one: what they do makes no difference to a client, or hurts nobody.

use crate::chance::Chance;
use crate::programme::SAME;
use config::{Given, ScriptRow, Scripts};

/// Work of the script of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Asks a statement of its own before that of the client, and keeps the answer to itself.
    Injects,
    /// Queues each command as it came, and gives some results back that it has made of those that
    /// came. It counts in `proxy.global`, so it has a home core.
    Rewrites,
    /// Raises errors in both of its hooks.
    Fails,
    /// Runs for ever now and then: seldom, since each time takes all the time that it may have.
    Loops,
}

impl Doing {
    /// The script of the world of this seed, if it has one.
    pub(crate) fn of(seed: u64) -> Option<Self> {
        let mut chance = Chance::new(seed, 23);
        let all = [Self::Injects, Self::Rewrites, Self::Fails, Self::Loops];
        chance.percent(30).then(|| *chance.one_of(&all))
    }

    fn text(self) -> String {
        let hooks = match self {
            Self::Injects => {
                "function read_query(packet)
                   if packet ~= SAME then return end
                   proxy.queries:append(2, packet, { resultset_is_needed = true })
                   proxy.queries:append(1, packet, { resultset_is_needed = true })
                   return proxy.PROXY_SEND_QUERY
                 end
                 function read_query_result(inj)
                   if inj.id == 2 then return proxy.PROXY_IGNORE_RESULT end
                 end"
            }
            Self::Rewrites => {
                "function read_query(packet)
                   proxy.global.count = (proxy.global.count or 0) + 1
                   proxy.queries:append(1, packet, { resultset_is_needed = packet == SAME })
                   return proxy.PROXY_SEND_QUERY
                 end
                 function read_query_result(inj)
                   if inj.query ~= SAME or not inj.resultset.fields[1] then return end
                   local rows = {}
                   for row in inj.resultset.rows do rows[#rows + 1] = row end
                   local fields = {}
                   for i = 1, #inj.resultset.fields do fields[i] = inj.resultset.fields[i] end
                   proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = fields, rows = rows } }
                   return proxy.PROXY_SEND_RESULT
                 end"
            }
            Self::Fails => {
                "local count = 0
                 function read_query(packet)
                   count = count + 1
                   if packet == SAME and count % 2 == 0 then
                     proxy.queries:append(1, packet, { resultset_is_needed = true })
                     return proxy.PROXY_SEND_QUERY
                   end
                   if count % 3 == 0 then error('planned') end
                 end
                 function read_query_result(inj) return inj.resultset.rows.nosuch end"
            }
            Self::Loops => {
                "local count = 0
                 function read_query()
                   count = count + 1
                   if count % 200 == 7 then while true do pcall(function() while true do end end) end end
                 end"
            }
        };
        format!("local SAME = string.char(proxy.COM_QUERY) .. \"{SAME}\"\n{hooks}")
    }
}

/// The scripts of a world.
pub(crate) fn of(doing: Option<Doing>) -> Scripts {
    let row = |doing: Doing| ScriptRow {
        script_name: format!("{doing:?}"),
        body: doing.text(),
        hook_ms_max: 1,
        ..ScriptRow::default()
    };
    let built = Scripts::build(doing.map(row), Given::default(), |_| Err(String::new()));
    built.expect("scripts of this file")
}
