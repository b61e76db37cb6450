//! LOAD and SAVE: modules between disk, memory, a configuration file, and what is in force.

use crate::cluster::{Reach, Share};
use crate::commands::Layer;
use crate::engine::Reply;
use crate::said::{Said, because};
use crate::shared::Shared;
use crate::tables::Module;
use crate::{build, file, force, layers, parts, private};
use config::{Refusal, Serves, Snapshot};
use std::io;
use std::path::Path;

/// Warnings about a file in the answer of its LOAD; the log has all.
const WARNINGS_SAID_MAX: usize = 100;

pub(crate) async fn move_module(
    shared: &Shared,
    module: Module,
    from: Layer,
    to: Layer,
) -> Result<Reply, Said> {
    let affected = match (from, to) {
        (Layer::Disk, _) => {
            let affected = layers::from_disk(&shared.engine.borrow(), module)?;
            shared
                .cluster
                .edits_are_done(module, shared.cluster.edited(module), false);
            affected
        }
        (_, Layer::Disk) => {
            shared.settle_if_shared(module).await?;
            return save(shared, module);
        }
        (Layer::Runtime, _) => {
            layers::from_runtime(&shared.engine.borrow(), module, &shared.snapshot.borrow())?;
            shared
                .cluster
                .edits_are_done(module, shared.cluster.edits_of(module), true);
            0
        }
        (Layer::Memory, _) => {
            return load(shared, module).await.map(Reply::said);
        }
    };
    Ok(Reply::Done {
        affected,
        info: String::new(),
    })
}

/// Everything can be saved; what will not be in force after a start is said.
pub(crate) fn save(shared: &Shared, module: Module) -> Result<Reply, Said> {
    let engine = shared.engine.borrow();
    let mark = shared.cluster.mark(module);
    let mark = mark
        .as_ref()
        .map(|(name, version, epoch, checksum)| (*name, *version, *epoch, checksum.as_str()));
    let affected = layers::to_disk(&engine, module, mark)?;
    let unusable = module
        .prefix()
        .map(|prefix| build::unusable_variables(engine.conn(), prefix))
        .transpose()?;
    let words: Vec<_> = unusable.iter().flatten().map(ToString::to_string).collect();
    let info = if words.is_empty() {
        String::new()
    } else {
        format!(
            "saved, but not in force after a start: {}",
            words.join("; ")
        )
    };
    if !info.is_empty() {
        (shared.hooks.log)(&format!("SAVE {} TO DISK: {info}", module.words()));
    }
    Ok(Reply::Done { affected, info })
}

/// Loads a module. Returns what there is to say about it: what was taken and does less than it
/// says, or only at the next start.
pub(crate) async fn load(shared: &Shared, module: Module) -> Result<String, Said> {
    load_as(shared, module, Reach::All).await
}

pub(crate) async fn load_as(shared: &Shared, module: Module, reach: Reach) -> Result<String, Said> {
    let (mut notices, share) = load_alone(shared, module, reach).await?;
    notices.extend(shared.told_by_fleet(share).await);
    Ok(notices.join("; "))
}

async fn load_alone(
    shared: &Shared,
    module: Module,
    reach: Reach,
) -> Result<(Vec<String>, Option<Share>), Said> {
    let _alone = shared.alone().await;
    refuse_lost_edit(shared, module)?;
    let edits = shared.cluster.edits_of(module);
    let now = shared.snapshot.borrow().clone();
    let asked = module
        .prefix()
        .map(|prefix| parts::read_variables(shared.engine.borrow().conn(), prefix))
        .transpose()?;
    let (next, notices) = force::build(shared, module, now).await?;
    let mut notices: Vec<_> = notices.iter().map(ToString::to_string).collect();
    notices.extend(check_scripts(shared, module, &next)?);
    let events = shared.events_after(module, &next).await?;
    notices.extend(events.notice);
    notices.extend(shared.cluster.told_apart(module, &next));
    notices.extend(
        shared
            .told_algorithm()
            .filter(|_| module == Module::Servers),
    );
    notices.extend(
        next.variables
            .waiting_for_a_start(&shared.snapshot.borrow().variables),
    );
    let share = shared.share_load(module, &next, reach).await?;
    for notice in &notices {
        (shared.hooks.log)(&format!("LOAD {} TO RUNTIME: {notice}", module.words()));
    }
    if let (Some(prefix), Some(asked)) = (module.prefix(), asked) {
        // Memory shows values as they are in force: `1` for a truth has become `true`. What was
        // set meanwhile waits for its own LOAD.
        shared.engine.borrow().transaction(|conn| {
            layers::keep_as_in_force(conn, prefix, &next, &asked.into_iter().collect())
        })?;
    }
    // What is edited from the reading of memory on waits for its own LOAD.
    shared.cluster.edits_are_done(module, edits, true);
    let entered = force::enter(shared, module, next, None, events.ends).await;
    shared.is_shared_now(share.as_ref());
    entered?;
    Ok((notices, share))
}

/// Refuses scripts that do not compile; what their authors should know.
pub(crate) fn check_scripts(
    shared: &Shared,
    module: Module,
    next: &Snapshot,
) -> Result<Vec<String>, Said> {
    let (mut notices, mut refused) = (Vec::new(), Vec::new());
    let all = next.scripts.active().iter();
    for script in all.filter(|_| module == Module::Scripts) {
        let refusal = |words| Refusal {
            table: "mysql_scripts",
            row: format!("script_name '{}'", script.name),
            column: "",
            words,
        };
        let checked = match script.serves {
            Serves::Buckets => {
                let runner = next.scripts.given().runner;
                let checked = runner.check(&script.chunk, &script.text);
                checked.map(|()| Vec::new())
            }
            Serves::Clients | Serves::Console => {
                (shared.hooks.check_script)(&script.chunk, &script.text)
            }
        };
        match checked {
            Ok(told) => notices.extend(told.into_iter().map(|one| refusal(one).to_string())),
            Err(words) => refused.push(refusal(words)),
        }
        for module in &script.modules {
            if let Err(words) = (shared.hooks.check_script)(&module.chunk, &module.text) {
                refused.push(refusal(words));
            }
        }
    }
    match refused.is_empty() {
        true => Ok(notices),
        false => Err(because(module.words(), &refused)),
    }
}

/// Once: a script that says DELETE, INSERT and LOAD would else put half of it into force
/// everywhere.
fn refuse_lost_edit(shared: &Shared, module: Module) -> Result<(), Said> {
    let Some(words) = shared.cluster.lost_edit(module, shared.rt.now()) else {
        return Ok(());
    };
    (shared.hooks.log)(&format!(
        "LOAD {} TO RUNTIME is refused: {words}",
        module.words()
    ));
    Err(Said::Sql(words))
}

pub(crate) async fn load_user(shared: &Shared, name: &str) -> Result<Reply, Said> {
    let (mut notices, share) = load_user_alone(shared, name).await?;
    notices.extend(shared.told_by_fleet(share).await);
    Ok(Reply::said(notices.join("; ")))
}

async fn load_user_alone(
    shared: &Shared,
    name: &str,
) -> Result<(Vec<String>, Option<Share>), Said> {
    let _alone = shared.alone().await;
    refuse_lost_edit(shared, Module::Users)?;
    let built = build::one_user(&shared.engine.borrow(), &shared.snapshot.borrow(), name);
    let (next, notices) = built.map_err(|refused| because("MYSQL USER", &refused))?;
    let mut notices: Vec<_> = notices.iter().map(ToString::to_string).collect();
    notices.extend(shared.cluster.told_apart(Module::Users, &next));
    let share = shared.share_load(Module::Users, &next, Reach::All).await?;
    for notice in &notices {
        (shared.hooks.log)(&format!("LOAD MYSQL USER TO RUNTIME: {notice}"));
    }
    let entered = force::put_in_force(shared, Module::Users, next, None).await;
    shared.is_shared_now(share.as_ref());
    entered?;
    Ok((notices, share))
}

pub(crate) fn load_config(shared: &Shared, module: Module) -> Result<Reply, Said> {
    let file = shared.config_file()?;
    let loaded = file::into_memory(&shared.engine.borrow(), &file, &[module]);
    let told = loaded.map_err(|refused| because(module.words(), &refused))?;
    let mut warnings: Vec<_> = told.warnings.iter().map(ToString::to_string).collect();
    for warning in &warnings {
        let words = module.words();
        (shared.hooks.log)(&format!("LOAD {words} FROM CONFIG: warning: {warning}"));
    }
    if warnings.len() > WARNINGS_SAID_MAX {
        let more = warnings.len() - WARNINGS_SAID_MAX;
        warnings.truncate(WARNINGS_SAID_MAX);
        warnings.push(format!("and {more} more, which are in the log"));
    }
    shared
        .cluster
        .edits_are_done(module, shared.cluster.edited(module), false);
    Ok(Reply::Done {
        affected: told.count,
        info: warnings.join("; "),
    })
}

pub(crate) fn write_config(shared: &Shared, path: &str, select: bool) -> Result<Reply, Said> {
    if path.is_empty() {
        return Err(Said::Sql("ProxySQL Admin Error: empty file name".into()));
    }
    let text = file::saved(shared.engine.borrow().conn())?;
    if let Err(error) = private::write(Path::new(path), &text) {
        let twice = if select { "" } else { "ProxySQL Admin Error: " };
        // ProxySQL's words for the most common.
        let why = if error.kind() == io::ErrorKind::NotFound {
            String::new()
        } else {
            format!(": {error}")
        };
        return Err(Said::Sql(format!("{twice}Cannot open file {path}{why}")));
    }
    let affected = if select { text.len() as u64 } else { 0 };
    Ok(Reply::Done {
        affected,
        info: format!("File {path} is saved."),
    })
}
