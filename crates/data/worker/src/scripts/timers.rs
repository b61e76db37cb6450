//! Timers of scripts, `m.every`: a script's own session on its home core, which has no client. It
//! lasts until other scripts are loaded.

use crate::core::Core;
use crate::core::guests::{Facts, Owner, Visitor};
use crate::core::lasting::lasting;
use crate::scripts::home::home_by_name;
use crate::scripts::host::View;
use bridge::Counter;
use config::{Password, Script, Scripts, User};
use net::Secret;
use rt::Instant;
use script::{Code, Failed, Scripted, may_have_timers};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wire::caps;
use wire::caps::Caps;
use wire::connect_attributes::ConnectAttributes;
use wire::resultset::UTF8MB4;

/// How soon a timer notices that other scripts are in force.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// Capabilities of timers' connections.
pub(crate) const CAPS: Caps = caps::LONG_PASSWORD
    | caps::LONG_FLAG
    | caps::PROTOCOL_41
    | caps::TRANSACTIONS
    | caps::SECURE_CONNECTION
    | caps::MULTI_RESULTS
    | caps::PLUGIN_AUTH
    | caps::DEPRECATE_EOF;

impl Core {
    /// Begins the timers of the scripts that have their home here.
    pub(crate) fn begin_timers(self: &Rc<Self>, scripts: &Arc<Scripts>) {
        for script in scripts.active() {
            let is_home = home_by_name(self, script) == self.index as usize;
            if !is_home || !may_have_timers(&script.text) {
                continue;
            }
            let (core, scripts, script) = (self.clone(), scripts.clone(), script.clone());
            let name = format!("timers of script '{}'", script.name);
            lasting(self, name, move || {
                run(core.clone(), scripts.clone(), script.clone())
            });
        }
    }
}

async fn run(core: Rc<Core>, scripts: Arc<Scripts>, script: Arc<Script>) {
    let tell = |Failed(words): &Failed| {
        core.tally.up(Counter::ScriptErrors);
        core.note_seldom(&format!("script '{}', its timers: {words}", script.name));
    };
    let (runs, periods) = match begin(&core, &scripts, &script).await {
        Ok(begun) => begun,
        Err(failed) => return tell(&failed),
    };
    let now = core.rt.now();
    let mut due: Vec<Instant> = periods.iter().map(|period| now + *period).collect();
    while let Some((at, next)) = due
        .iter()
        .copied()
        .enumerate()
        .min_by_key(|(_, next)| *next)
    {
        core.rt.sleep((next - core.rt.now()).min(LOOKS_EVERY)).await;
        let in_force = Arc::ptr_eq(&core.epoch().snapshot.scripts, &scripts);
        if !in_force || core.is_draining() {
            break;
        }
        if core.rt.now() < next {
            continue;
        }
        core.tally.up(Counter::ScriptCalls);
        if let Err(failed) = runs.tick(at).await {
            tell(&failed);
        }
        if let (Some(due), Some(period)) = (due.get_mut(at), periods.get(at)) {
            *due = core.rt.now() + *period;
        }
    }
}

/// Runs the main chunk for the script itself, and returns how often each of its timers is due.
async fn begin(
    core: &Rc<Core>,
    scripts: &Arc<Scripts>,
    script: &Arc<Script>,
) -> Result<(Scripted, Vec<Duration>), Failed> {
    let owner = owner(core, script);
    let visitor = Visitor {
        id: 0,
        client: (String::new(), 0),
        schema: owner.user.default_schema.as_deref().unwrap_or("").into(),
        owner,
    };
    let facts = Rc::new(Facts::new(core.clone(), &visitor, None));
    let view = Rc::new(View::new(facts, script.clone()));
    let code = Code {
        chunk: &script.chunk,
        text: &script.text,
        modules: &script.modules,
        has_folders: !script.folders.is_empty(),
    };
    let vm = core.scripting.vm(scripts, script)?;
    let runs = Scripted::begin_own(&vm, &script.globals, code, view, script.hook_ms_max);
    let runs = runs.await?;
    let periods = runs.periods()?.into_iter();
    let periods = periods.map(Duration::from_millis).collect();
    Ok((runs, periods))
}

/// As whom timers ask: the first user of the script's row whose password is known in clear. One
/// without a name asks nobody.
fn owner(core: &Core, script: &Script) -> Owner {
    let epoch = core.epoch();
    let users = &epoch.snapshot.users;
    let known = script.users.iter().filter_map(|name| users.frontend(name));
    let mut known = known.filter_map(|user| match &user.password {
        Password::Empty => Some((user.clone(), Secret::None)),
        Password::Clear(clear) => Some((user.clone(), Secret::Clear(clear.to_string()))),
        Password::Native(_) | Password::CachingSha2(_) => None,
    });
    let (user, secret) = known.next().unwrap_or_else(|| (nobody(), Secret::None));
    Owner {
        user,
        secret,
        caps: CAPS,
        collation: UTF8MB4,
        attributes: ConnectAttributes::default(),
        stand_in: Vec::new(),
        local: ("".into(), 0),
        is_at_console: false,
    }
}

/// A user without a name.
pub(crate) fn nobody() -> Arc<User> {
    Arc::new(User {
        username: "".into(),
        password: Password::Empty,
        use_ssl: false,
        default_hostgroup: 0,
        default_schema: None,
        schema_locked: false,
        transaction_persistent: false,
        fast_forward: false,
        max_connections: 0,
        attributes: None,
        comment: None,
    })
}
