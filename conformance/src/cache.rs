//! Where things that are worth keeping between runs live, and the project's own folders.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The project's root: the folder above this crate's, as cargo says it, since a built programme may
/// serve several checkouts.
pub fn root() -> PathBuf {
    let here =
        env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&here)
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// The cache folder; `scripts/cache.sh` says the same.
pub fn folder() -> PathBuf {
    if let Some(given) = env::var_os("MILLRACE_CACHE").filter(|given| !given.is_empty()) {
        return given.into();
    }
    let common = PathBuf::from("/var/cache/millrace");
    if fs::create_dir_all(&common).is_ok() && tempfile_in(&common) {
        return common;
    }
    PathBuf::from(env::var_os("HOME").unwrap_or_else(|| "/tmp".into())).join(".cache/millrace")
}

fn tempfile_in(folder: &Path) -> bool {
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    let fine = fs::write(&probe, b"").is_ok();
    let _ = fs::remove_file(probe);
    fine
}
