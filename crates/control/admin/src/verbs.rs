//! `PROXYSQL …`: what is done to the proxy as a whole.

use crate::commands::Verb;
use crate::engine::Reply;
use crate::said::Said;
use crate::shared::{Clients, Shared};

pub(crate) async fn carry_out(shared: &Shared, verb: Verb) -> Result<Reply, Said> {
    match verb {
        Verb::Start => start(shared).await?,
        Verb::Stop => stop(shared).await?,
        Verb::Restart => restart(shared).await?,
        Verb::Pause => {
            accept(
                shared,
                Clients::Paused,
                "ProxySQL MySQL module is already paused, impossible to pause",
            )
            .await?
        }
        Verb::Resume => {
            accept(
                shared,
                Clients::Welcome,
                "ProxySQL MySQL module is not paused, impossible to resume",
            )
            .await?
        }
        Verb::Shutdown => (shared.hooks.shutdown)(false),
        Verb::Kill => (shared.hooks.shutdown)(true),
        Verb::ReadOnly => shared.engine.borrow_mut().set_read_only(true)?,
        Verb::ReadWrite => shared.engine.borrow_mut().set_read_only(false)?,
        Verb::FlushLogs => shared.flush_logs().await?,
        Verb::ReloadTls => reload_tls(shared).await?,
        Verb::FlushConfigDb => shared.engine.borrow().reopen_disk()?,
    }
    Ok(Reply::done())
}

/// PAUSE and RESUME. What some cores could not be told can be said again, and taken back.
async fn accept(shared: &Shared, wanted: Clients, already: &str) -> Result<(), Said> {
    let _alone = shared.alone().await;
    match shared.clients.get() {
        Clients::Stopped => {
            let verb = match wanted {
                Clients::Paused => "pause",
                _ => "resume",
            };
            let words = "ProxySQL MySQL module not running, impossible to";
            return Err(Said::Sql(format!("{words} {verb}")));
        }
        now if now == wanted => return Err(already.into()),
        _ => {}
    }
    tell_clients(shared, wanted).await
}

/// `PROXYSQL START`, after a STOP or `--no-start`.
async fn start(shared: &Shared) -> Result<(), Said> {
    let _alone = shared.alone().await;
    if shared.clients.get() != Clients::Stopped {
        return Err("ProxySQL already started".into());
    }
    (shared.hooks.log)("PROXYSQL START: clients are let in");
    tell_clients(shared, Clients::Welcome).await
}

/// `PROXYSQL STOP`: no listener, no client; this port stays.
async fn stop(shared: &Shared) -> Result<(), Said> {
    let _alone = shared.alone().await;
    if shared.clients.get() == Clients::Stopped {
        return Err("ProxySQL already stopped".into());
    }
    (shared.hooks.log)("PROXYSQL STOP: nobody is served until PROXYSQL START");
    close(shared).await
}

/// `PROXYSQL RESTART`: every client ends, and whoever comes then is served by what is in force.
async fn restart(shared: &Shared) -> Result<(), Said> {
    let _alone = shared.alone().await;
    (shared.hooks.log)("PROXYSQL RESTART: all clients are ended");
    if shared.clients.get() != Clients::Stopped {
        close(shared).await?;
    }
    tell_clients(shared, Clients::Welcome).await
}

async fn close(shared: &Shared) -> Result<(), Said> {
    shared.clients.set(Clients::Stopped);
    let words = "not all cores have said that their clients are gone; PROXYSQL START is possible";
    shared.cores.close().await.map_err(|_silent| words.into())
}

async fn tell_clients(shared: &Shared, wanted: Clients) -> Result<(), Said> {
    shared.clients.set(Clients::PartlyWelcome);
    let untold = shared.cores.accept(wanted == Clients::Welcome).await;
    if untold > 0 {
        return Err(Said::Sql(format!(
            "{untold} of {} cores could not be told; try again",
            shared.cores.len()
        )));
    }
    shared.clients.set(wanted);
    Ok(())
}

async fn reload_tls(shared: &Shared) -> Result<(), Said> {
    let _alone = shared.alone().await;
    let Some(renewed) = (shared.hooks.reload_tls)()? else {
        return Ok(());
    };
    let untold = shared.cores.reload_tls(&renewed).await;
    *shared.acceptor.borrow_mut() = Some(renewed.acceptor);
    match untold {
        0 => Ok(()),
        _ => Err(Said::Sql(format!(
            "{untold} of {} cores could not be told and use the certificate of before, all others the new one; try again",
            shared.cores.len()
        ))),
    }
}
