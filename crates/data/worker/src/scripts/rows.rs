//! Answers whose rows a script sees on their way to the client, and what becomes of them where it
//! fails.

use crate::core::Core;
use crate::known::answer::Complaint;
use crate::scripts::home::Runs;
use bridge::Counter;
use config::{OnError, Script};
use script::{Failed, Item, Passage, Response};
use std::rc::Rc;
use std::sync::Arc;
use wire::caps::Caps;

/// One answer on its way through a script.
pub(crate) struct Through {
    core: Rc<Core>,
    id: u32,
    script: Arc<Script>,
    runs: Rc<Runs>,
    passage: Passage,
    has_failed: bool,
}

impl Through {
    /// The answer to this command, for a client with these capabilities; none where the script runs
    /// on another core.
    pub(crate) fn of(
        (core, id): (&Rc<Core>, u32),
        (script, runs): (&Arc<Script>, &Rc<Runs>),
        (item, is_binary): (&Item, bool),
        caps: Caps,
    ) -> Option<Self> {
        runs.here()?;
        let row_len_max = script.result_len_max;
        Some(Self {
            core: core.clone(),
            id,
            script: script.clone(),
            runs: runs.clone(),
            passage: Passage::new(caps, is_binary, item.is_collected, row_len_max),
            has_failed: false,
        })
    }

    /// The answer as far as it has come.
    pub(crate) fn passage(&self) -> &Passage {
        &self.passage
    }

    /// Whether the session ends behind the answer.
    pub(crate) fn ends_session(&self) -> bool {
        self.has_failed && self.script.on_error == OnError::Disconnect
    }

    /// Takes a piece; returns what goes on.
    pub(crate) fn take(&mut self, mut piece: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(piece.len() + piece.len() / 4);
        let runs = self.runs.clone();
        let Some(scripted) = runs.here() else {
            return out;
        };
        while let Err(failed) = self.passage.follow(scripted, piece, &mut out) {
            self.fails(&failed, &mut out);
            // All of it is with the passage.
            piece = &[];
        }
        out
    }

    fn fails(&mut self, failed: &Failed, out: &mut Vec<u8>) {
        self.has_failed = true;
        let script = &self.script;
        self.core.tally.up(Counter::ScriptErrors);
        let (name, id) = (&script.name, self.id);
        self.core
            .note_seldom(&format!("script '{name}', session {id}: {failed}"));
        if script.on_error == OnError::Forward && self.passage.let_pass(out) {
            return;
        }
        let complaint = failed_script(script);
        let said = Response::Err {
            code: complaint.code,
            state: complaint.state,
            message: complaint.words.into_bytes(),
        };
        self.passage.refuse(&said, out);
    }
}

/// An answer to whom a script's failure is told.
pub(crate) fn failed_script(script: &Script) -> Complaint {
    let words = format!(
        "The script '{}' has failed. Check the proxy's log",
        script.name
    );
    Complaint::with(1105, "07000", words)
}
