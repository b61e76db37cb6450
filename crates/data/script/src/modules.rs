//! Modules that scripts require and that are built in: Lua's own text, or functions of ours.

use crate::{proto, tokens};
use mlua::{Lua, Table};

/// Modules written in Lua. Each is run once a VM, with the `proxy` table of whoever asks.
const WRITTEN: &[(&str, &str)] = &[
    ("proxy.commands", include_str!("modules/commands.lua")),
    ("proxy.parser", include_str!("modules/parser.lua")),
    ("proxy.balance", include_str!("modules/balance.lua")),
    ("proxy.auto-config", include_str!("modules/auto_config.lua")),
    ("log4lua", include_str!("modules/log4lua.lua")),
    ("luasql.mysql", include_str!("modules/luasql.lua")),
    ("json", include_str!("modules/json.lua")),
    ("others", include_str!("modules/others.lua")),
    ("today", include_str!("today.lua")),
    ("packed", include_str!("packed.lua")),
    ("tokens", include_str!("tokens.lua")),
    ("bounds", include_str!("modules/bounds.lua")),
    ("reach", include_str!("modules/reach.lua")),
];

/// Names that scripts require and that are not to be had, with the reason.
const REFUSED: &[(&str, &str)] = &[
    (
        "lpeg",
        "lpeg is written in C, and no such code is loaded; string.find, string.gmatch and proxy.tokenizer read texts",
    ),
    (
        "re",
        "it is a part of lpeg, which is written in C, and no such code is loaded; string.find, string.gmatch and proxy.tokenizer read texts",
    ),
    (
        "rex",
        "it is written in C, and no such code is loaded; string.find, string.gmatch and proxy.tokenizer read texts",
    ),
    (
        "socket",
        "a script opens no connections of its own; m.http of require(\"millrace\") calls others, luasql.mysql asks servers",
    ),
    ("mime", "it is a part of socket; json and md5 are built in"),
    (
        "memcached",
        "a script opens no connections of its own; m.shared of require(\"millrace\") keeps values for all sessions, and cache_ttl of a rule keeps results",
    ),
    (
        "redis",
        "a script opens no connections of its own; m.shared of require(\"millrace\") keeps values for all sessions, and cache_ttl of a rule keeps results",
    ),
    (
        "luarocks",
        "rocks are not looked for; a module of Lua may lie beside the script",
    ),
    ("ffi", "it reaches memory"),
];

/// Text of a module, and the name that its messages have.
pub(crate) fn written(name: &str) -> Option<&'static str> {
    let found = WRITTEN.iter().find(|(of, _)| *of == name);
    found.map(|(_, text)| *text)
}

/// Why a name is not to be had. What stands behind a dot or an underscore is a part of it.
pub(crate) fn refused(name: &str) -> &'static str {
    let root = name.split(['.', '_']).next().unwrap_or_default();
    let found = REFUSED.iter().find(|(of, _)| of.eq_ignore_ascii_case(root));
    found.map_or(
        "it is neither built in nor a file beside the script",
        |(_, why)| *why,
    )
}

/// Modules that are functions of ours, by name.
pub(crate) fn native(lua: &Lua) -> Result<Table, mlua::Error> {
    let all = lua.create_table()?;
    let tokenizer = tokens::table(lua)?;
    all.set("mysql.tokenizer", &tokenizer)?;
    all.set("proxy.tokenizer", tokenizer)?;
    all.set("mysql.proto", proto::table(lua)?)?;
    all.set("mysql.password", proto::passwords(lua)?)?;
    Ok(all)
}
