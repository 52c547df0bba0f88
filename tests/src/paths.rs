//! Where things are: the workspace, and the data kept beside it.

use std::path::{Path, PathBuf};

/// The folder of the workspace.
///
/// # Panics
/// When this crate was moved out of it.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the workspace").to_owned()
}

/// A file of real data, when it is there: in `../shared/data` beside the workspace or beside one of its parents.
pub fn shared_data(name: &str) -> Option<PathBuf> {
    let workspace = workspace();
    workspace.ancestors().skip(1).map(|folder| folder.join("shared/data").join(name)).find(|file| file.is_file())
}
