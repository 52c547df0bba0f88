//! The session of an app with one user, kept in a file from one start to the next.
//!
//! Invariant: the file is whole or not there, and on Unix only its owner may read it (mode 0600). It holds the tokens
//! themselves: who has the file has the session.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    error::{Error, Result},
    model::Session,
};

/// Where the session is kept.
pub(super) struct SessionFile(PathBuf);

/// What is kept of it.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) user_id: Uuid,
    pub(super) access_token: String,
    pub(super) refresh_token: String,
}

impl SessionFile {
    pub(super) fn new(path: PathBuf) -> SessionFile {
        SessionFile(path)
    }

    /// What was kept; nothing when there is no file, or none that can be read as one.
    pub(super) fn load(&self) -> Result<Option<Kept>> {
        match fs::read(&self.0) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("read", error)),
        }
    }

    /// Keeps a session in place of what was kept.
    pub(super) fn save(&self, session: &Session) -> Result<()> {
        let kept = Kept {
            user_id: session.user.id,
            access_token: session.access_token.clone(),
            refresh_token: session.refresh_token.clone(),
        };
        // Strings always become JSON.
        let text = serde_json::to_vec(&kept).unwrap_or_default();
        self.replace(&text).map_err(|error| self.failed("write", error))
    }

    /// Keeps nothing any more, if what is kept is the session with this token: another may have taken its place.
    pub(super) fn remove(&self, refresh_token: &str) -> Result<()> {
        if self.load()?.is_some_and(|kept| kept.refresh_token != refresh_token) {
            return Ok(());
        }
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed("remove", error)),
            _ => Ok(()),
        }
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        if let Some(folder) = self.0.parent() {
            fs::create_dir_all(folder)?;
        }
        let next = self.0.with_extension(format!("{}.new", Uuid::new_v4().simple()));
        let written = write_new(&next, text).and_then(|()| fs::rename(&next, &self.0));
        match written {
            Ok(()) => flush_folder(&self.0),
            Err(error) => {
                let _ = fs::remove_file(&next);
                Err(error)
            }
        }
    }

    fn failed(&self, verb: &str, error: io::Error) -> Error {
        Error::unavailable(format!("Cannot {verb} the kept session {}: {error}", self.0.display())).caused_by(error)
    }
}

/// Makes a rename survive power loss: what it replaced names tokens that count no more.
fn flush_folder(path: &std::path::Path) -> io::Result<()> {
    match path.parent() {
        #[cfg(unix)]
        Some(folder) => fs::File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

fn write_new(path: &std::path::Path, text: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text)?;
    file.sync_all()
}
