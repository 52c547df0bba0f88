//! A temporary folder that is gone when its test is.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// A new, empty folder; removed with all it holds on drop.
#[derive(Debug)]
pub struct TempFolder(PathBuf);

impl TempFolder {
    /// Makes one.
    ///
    /// # Panics
    /// When the system's temporary folder cannot be written to.
    #[allow(clippy::new_without_default, reason = "it touches the disk")]
    pub fn new() -> TempFolder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let folder = env::temp_dir().join(format!("townsquare-{}-{number}", process::id()));
            match fs::create_dir(&folder) {
                Ok(()) => return TempFolder(folder),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{}: {error}", folder.display()),
            }
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of something in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // Whatever cannot be removed is the system's to clean.
        let _ = fs::remove_dir_all(&self.0);
    }
}
