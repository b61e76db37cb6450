//! Files of scripts that change: without a LOAD they are in force for new sessions, as in MySQL Proxy.

use crate::loading::check_scripts;
use crate::said::Said;
use crate::shared::Shared;
use crate::tables::Module;
use crate::{force, parts};
use config::{Scripts, Snapshot};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How often the files are looked at.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// Time of the last change and length, by file; those that are there.
type Stamps = BTreeMap<PathBuf, (SystemTime, u64)>;

/// Files that the scripts in force were read from, with their texts.
fn files(scripts: &Scripts) -> Vec<(PathBuf, Arc<str>)> {
    let mut files = Vec::new();
    for script in scripts.active() {
        let is_file = |row: &&config::ScriptRow| *row.script_name == *script.name;
        let row = scripts.rows().iter().find(is_file);
        if row.is_none_or(|row| row.path.is_empty()) {
            continue;
        }
        files.push((PathBuf::from(&*script.chunk), script.text.clone()));
        let modules = script.modules.iter();
        files.extend(modules.map(|one| (PathBuf::from(&*one.chunk), one.text.clone())));
    }
    files
}

fn stamp(file: &PathBuf) -> Option<(SystemTime, u64)> {
    let about = fs::metadata(file).ok()?;
    Some((about.modified().ok()?, about.len()))
}

/// Stamps of the files as they are now, and whether they are others than `before`; without any, whether
/// a text is another than the one that was read.
fn look(files: &[(PathBuf, Arc<str>)], before: Option<&Stamps>) -> (Stamps, bool) {
    let stamps: Stamps = files
        .iter()
        .filter_map(|(file, _)| Some((file.clone(), stamp(file)?)))
        .collect();
    let is_other = match before {
        // One that is being replaced is not there for a moment.
        Some(before) => stamps
            .iter()
            .any(|(file, now)| before.get(file) != Some(now)),
        None => files
            .iter()
            .any(|(file, text)| fs::read_to_string(file).is_ok_and(|now| *now != **text)),
    };
    (stamps, is_other)
}

impl Shared {
    /// Looks at the files of scripts for as long as the admin port is there.
    pub(crate) async fn look_at_scripts(self: Rc<Self>) {
        let mut seen: Option<(Arc<Scripts>, Stamps)> = None;
        loop {
            self.rt.sleep(LOOKS_EVERY).await;
            let scripts = self.snapshot.borrow().scripts.clone();
            let files = files(&scripts);
            if files.is_empty() {
                continue;
            }
            let before = seen.take().filter(|(of, _)| Arc::ptr_eq(of, &scripts));
            let before = before.map(|(_, stamps)| stamps);
            let looked = self.aside.done(move || look(&files, before.as_ref())).await;
            let Some((stamps, is_other)) = looked else {
                continue;
            };
            let in_force = match is_other {
                true => self.read_scripts_again(&scripts).await,
                false => scripts,
            };
            seen = Some((in_force, stamps));
        }
    }

    /// Puts scripts into force as their files are now, unless a LOAD was faster. Returns those that are
    /// in force then.
    async fn read_scripts_again(&self, of: &Arc<Scripts>) -> Arc<Scripts> {
        let _alone = self.alone().await;
        let now = self.snapshot.borrow().clone();
        if !Arc::ptr_eq(&now.scripts, of) {
            return now.scripts.clone();
        }
        match self.scripts_of_now(now).await {
            Ok(()) => {
                (self.hooks.log)("a script's file has changed: it is in force for new sessions")
            }
            Err(refused) => (self.hooks.log)(&format!(
                "a script's file has changed, and the scripts before stay in force: {}",
                refused.words()
            )),
        }
        self.snapshot.borrow().scripts.clone()
    }

    async fn scripts_of_now(&self, now: Snapshot) -> Result<(), Said> {
        let helpers = self.aside.helpers();
        let built = self
            .aside
            .done(move || parts::read_scripts_again(now, &helpers));
        let next = built
            .await
            .ok_or("a defect ended the reading; the log has it")?;
        let next =
            next.map_err(|refused| crate::said::because(Module::Scripts.words(), &refused))?;
        check_scripts(self, Module::Scripts, &next)?;
        force::carry_out(self, next).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_written_again_is_another() {
        let folder = std::env::temp_dir().join(format!("millrace-changed-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("a.lua");
        fs::write(&file, "x = 1").unwrap();
        let files = [(file.clone(), Arc::from("x = 1"))];
        let (first, is_other) = look(&files, None);
        assert!(!is_other);
        assert!(!look(&files, Some(&first)).1);
        fs::write(&file, "x = 12").unwrap();
        assert!(look(&files, Some(&first)).1);
        // It was changed before anybody had looked.
        let (second, is_other) = look(&files, None);
        assert!(is_other);
        fs::remove_file(&file).unwrap();
        assert!(!look(&files, Some(&second)).1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
