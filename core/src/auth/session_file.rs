//! The session file: keeps the session of a single-user app from one start to the next (`persist_session`).
//!
//! Invariant: the file is complete or absent, and on Unix only its owner can read it (mode 0600). It holds the tokens in
//! plain text: any program that can read the file can use the session. A process that replaces the session's tokens holds
//! the file's lock from before it reads the file until it has written it, so two processes never use one refresh token. A
//! process that signs in or out holds it, too. New tokens are written as pending before the database gets them: if the process
//! dies in between, the file has the tokens that the database knows, whichever they are.

use std::{
    fs::{self, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    error::{Error, Result},
    model::Session,
    regular_file::{create_private_file, create_private_folders, open_lock_file, sync_folder},
};

/// How long to wait for another process that holds the lock: longer than a slow refresh takes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// How often to try to take the lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(10);

/// The path of a session file.
pub(super) struct SessionFile(PathBuf);

/// The lock of a session file. Dropping it unlocks, even if a forked child has the file open too. It is a file of its own, because a
/// save replaces the session file. `None` on a file system without locks.
pub(super) struct SessionFileLock(Option<fs::File>);

/// The content of a session file. It has no `Debug`, because tokens are secrets.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredSession {
    pub(super) user_id: Uuid,
    #[serde(flatten)]
    pub(super) tokens: StoredTokens,
    /// The tokens of a refresh that may have been interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pending: Option<StoredTokens>,
}

/// The tokens of a session.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredTokens {
    pub(super) access_token: String,
    pub(super) refresh_token: String,
}

impl StoredSession {
    pub(super) fn of(session: &Session) -> StoredSession {
        let (access_token, refresh_token) = (session.access_token.clone(), session.refresh_token.clone());
        let tokens = StoredTokens { access_token, refresh_token };
        StoredSession { user_id: session.user.id, tokens, pending: None }
    }

    fn has(&self, refresh_token: &str) -> bool {
        let pairs = [Some(&self.tokens), self.pending.as_ref()];
        pairs.into_iter().flatten().any(|tokens| tokens.refresh_token == refresh_token)
    }
}

impl Drop for SessionFileLock {
    fn drop(&mut self) {
        if let Some(file) = &self.0
            && let Err(error) = file.unlock()
        {
            tracing::warn!(%error, "the lock of the session file is released when its last user closes it");
        }
    }
}

impl SessionFile {
    pub(super) fn new(path: PathBuf) -> SessionFile {
        SessionFile(path)
    }

    /// Waits until no other process holds the lock, and takes it.
    ///
    /// # Errors
    /// `Unavailable` when the lock file cannot be created, and when another process holds the lock for too long.
    pub(super) async fn lock(&self) -> Result<SessionFileLock> {
        let path = self.0.with_extension("lock");
        let file = open_lock(&path).map_err(|error| self.failed("lock", error))?;
        let locked = async {
            loop {
                match file.try_lock() {
                    Ok(()) => return true,
                    Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_INTERVAL).await,
                    Err(TryLockError::Error(error)) => {
                        tracing::warn!(%error, path = %path.display(), "the session file cannot be locked");
                        return false;
                    }
                }
            }
        };
        match tokio::time::timeout(LOCK_TIMEOUT, locked).await {
            Ok(is_locked) => Ok(SessionFileLock(is_locked.then_some(file))),
            Err(_) => Err(Error::unavailable(format!("Another process holds the lock {}", path.display()))),
        }
    }

    /// Reads the file; `None` when it does not exist or does not hold a session.
    pub(super) fn load(&self) -> Result<Option<StoredSession>> {
        // A read of a pipe would wait for a writer, and a read of a device may never end.
        if fs::metadata(&self.0).is_ok_and(|found| !found.is_file()) {
            return Err(self.failed("read", io::Error::other("it is no file")));
        }
        match fs::read(&self.0) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("read", error)),
        }
    }

    /// Replaces the file's content with `session`. The caller holds the lock.
    pub(super) fn save(&self, session: &Session) -> Result<()> {
        self.write(&StoredSession::of(session))
    }

    /// Replaces the file's content with `session`, which has new tokens. Does nothing if the file holds a session of another user, who
    /// has signed in since. The caller holds the lock.
    pub(super) fn save_new_tokens(&self, session: &Session) -> Result<()> {
        match self.load()?.is_none_or(|stored| stored.user_id == session.user.id) {
            true => self.save(session),
            false => Ok(()),
        }
    }

    /// Adds the tokens that will replace `refresh_token` and its access token. Does nothing if the file does not hold the
    /// session of `refresh_token`.
    pub(super) fn save_pending(&self, refresh_token: &str, pending: StoredTokens) -> Result<()> {
        let Some(stored) = self.load()?.filter(|stored| stored.has(refresh_token)) else { return Ok(()) };
        let StoredSession { user_id, tokens, pending: earlier } = stored;
        let current = earlier.filter(|earlier| earlier.refresh_token == refresh_token).unwrap_or(tokens);
        self.write(&StoredSession { user_id, tokens: current, pending: Some(pending) })
    }

    /// Removes the file, unless it holds a session with other refresh tokens by now.
    pub(super) fn remove(&self, refresh_token: &str) -> Result<()> {
        if self.load()?.is_some_and(|stored| !stored.has(refresh_token)) {
            return Ok(());
        }
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed("remove", error)),
            _ => Ok(()),
        }
    }

    fn write(&self, stored: &StoredSession) -> Result<()> {
        // Serialising strings cannot fail.
        let text = serde_json::to_vec(stored).unwrap_or_default();
        self.replace(&text).map_err(|error| self.failed("write", error))
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        if let Some(folder) = self.0.parent() {
            create_private_folders(folder)?;
        }
        let new = self.0.with_extension(format!("{}.new", Uuid::new_v4().simple()));
        let written = write_new(&new, text).and_then(|()| fs::rename(&new, &self.0));
        match written {
            // The rename survives a power loss: the tokens of the replaced file are invalid.
            Ok(()) => self.0.parent().map_or(Ok(()), sync_folder),
            Err(error) => {
                let _ = fs::remove_file(&new);
                Err(error)
            }
        }
    }

    fn failed(&self, verb: &str, error: io::Error) -> Error {
        Error::unavailable(format!("Cannot {verb} the session file {}: {error}", self.0.display())).caused_by(error)
    }
}

/// Opens the lock file, which stays in the folder: a process that deleted it could unlock another's.
fn open_lock(path: &Path) -> io::Result<fs::File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    open_lock_file(path)
}

fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = create_private_file(path)?;
    file.write_all(text)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_forked_child_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = SessionFile::new(folder.path().join("session.json"));
        let lock = file.lock().await.expect("nobody has it");
        // A child has the same open file.
        let of_child = lock.0.as_ref().expect("the file system has locks").try_clone().expect("open");
        drop(lock);
        drop(file.lock().await.expect("it is free"));
        drop(of_child);
    }
}
