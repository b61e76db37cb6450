//! Configurations that a LOAD has read or another proxy has given are built and put into force.

use crate::cluster::{self, Arrived};
use crate::said::{Said, because};
use crate::shared::Shared;
use crate::tables::Module;
use crate::{access, build};
use config::{Refusal, Snapshot};

/// A module that was made, and checked, into force; `theirs`: as another proxy has it.
/// `ends_events`: nothing is logged from then on.
pub(crate) async fn enter(
    shared: &Shared,
    module: Module,
    next: Snapshot,
    theirs: Option<Arrived>,
    ends_events: bool,
) -> Result<(), Said> {
    if module == Module::AdminVariables {
        shared
            .engine
            .borrow_mut()
            .set_read_only(next.variables.admin_read_only)?;
    }
    let logs = next.variables.logs();
    let put = put_in_force(shared, module, next, theirs).await;
    if ends_events {
        // It is in force also where a core is late. What was answered before is still logged.
        let _late = shared.cores.hand_over_events().await;
        shared.log_like(logs).await?;
    }
    put
}

/// Builds what a LOAD of the module would put into force, and tells what there is to say about
/// it.
pub(crate) async fn build(
    shared: &Shared,
    module: Module,
    now: Snapshot,
) -> Result<(Snapshot, Vec<Refusal>), Said> {
    let refused = |refused: Vec<Refusal>| because(module.words(), &refused);
    let read = build::read(&shared.engine.borrow(), &now, module).map_err(refused)?;
    drop(now);
    let helpers = shared.aside.helpers();
    let built = shared.aside.done(move || read.build(&helpers)).await;
    let built = built
        .ok_or("a defect ended the LOAD; the log has it")?
        .map_err(refused)?;
    if module == Module::AdminVariables {
        access::check_now(&built.0.variables).map_err(refused)?;
        cluster::check_version(&built.0.variables).map_err(|one| refused(vec![one]))?;
    }
    Ok(built)
}

pub(crate) async fn put_in_force(
    shared: &Shared,
    module: Module,
    next: Snapshot,
    theirs: Option<Arrived>,
) -> Result<(), Said> {
    shared.cluster.loaded(module, theirs, &next, shared.now_s());
    shared.keeper.keep(module, &next);
    carry_out(shared, next).await
}

/// A snapshot into force on all cores.
pub(crate) async fn carry_out(shared: &Shared, next: Snapshot) -> Result<(), Said> {
    let generation = next.generation;
    let before = shared.snapshot.replace(next.clone());
    (shared.hooks.in_force)(&next);
    shared.aside.later(move || drop(before));
    let (confirmed, untold) = shared.cores.load(&next, &shared.aside).await;
    let all = shared.cores.len();
    if confirmed == all {
        return Ok(());
    }
    let others = match untold {
        0 => "the others work by an older one until they come to it".to_owned(),
        _ => format!(
            "{untold} could not even be told, and work by an older one until it is loaded again"
        ),
    };
    Err(Said::Sql(format!(
        "only {confirmed} of {all} cores have confirmed generation {generation} in time; {others}"
    )))
}
