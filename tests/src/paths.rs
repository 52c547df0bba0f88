//! Paths of the workspace and of the shared data beside it.

use std::path::{Path, PathBuf};

/// Returns the folder of the workspace.
///
/// # Panics
/// When this crate lies outside of it.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the workspace").to_owned()
}

/// Returns a file of `shared/data` beside the workspace or beside one of its parents; `None` when there is none.
pub fn shared_data(name: &str) -> Option<PathBuf> {
    let workspace = workspace();
    workspace.ancestors().skip(1).map(|folder| folder.join("shared/data").join(name)).find(|file| file.is_file())
}
