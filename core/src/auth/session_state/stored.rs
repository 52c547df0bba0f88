//! The session of a handle in the session file.

use super::SessionState;
use crate::{
    auth::{
        session_file::{SessionFile, SessionFileLock, StoredSession, StoredTokens},
        session_store::TokenPair,
    },
    error::Result,
    model::Session,
};

impl SessionState {
    /// Locks the session file, if there is one. The caller holds the session lock.
    pub(in crate::auth) async fn lock_file(&self) -> Result<Option<SessionFileLock>> {
        let Some(file) = &self.file else { return Ok(None) };
        file.lock().await.map(Some)
    }

    /// Writes a new session to the file. The caller holds the lock of the file.
    pub(super) fn save(&self, session: &Session) -> Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.save(session))
    }

    /// Returns the stored session with the tokens that the database knows: the pending ones if their refresh was committed.
    /// The caller holds the lock of the file.
    pub(super) async fn stored_session(&self) -> Result<Option<StoredSession>> {
        let Some(mut stored) = self.file.as_ref().map(SessionFile::load).transpose()?.flatten() else {
            return Ok(None);
        };
        if let Some(pending) = stored.pending.take()
            && self.accounts.sessions.has_refresh_token(&pending.refresh_token).await?
        {
            stored.tokens = pending;
        }
        Ok(Some(stored))
    }

    /// Returns the stored session if it has other tokens for the same user, which another process has saved. The caller
    /// holds the lock of the file.
    pub(super) async fn newer_stored_session(&self, session: &Session) -> Result<Option<StoredSession>> {
        let is_newer = |stored: &StoredSession| {
            stored.user_id == session.user.id && stored.tokens.refresh_token != session.refresh_token
        };
        Ok(self.stored_session().await?.filter(is_newer))
    }

    /// Saves the new tokens that will replace `refresh_token` as pending. The refresh continues even if they cannot be saved. The
    /// caller holds the lock of the file.
    pub(super) fn save_pending(&self, refresh_token: &str, tokens: &TokenPair) {
        let (access, refresh) = (tokens.access_token.clone(), tokens.refresh_token.clone());
        let pending = StoredTokens { access_token: access, refresh_token: refresh };
        if let Some(file) = &self.file
            && let Err(error) = file.save_pending(refresh_token, pending)
        {
            tracing::error!(%error, "the new tokens of a session could not be saved before they are used");
        }
    }

    /// Saves tokens that are valid in the database already, unless another user has signed in. The session continues with them even if
    /// they cannot be saved. The caller holds the lock of the file.
    pub(super) fn save_new_tokens(&self, session: &Session) {
        if let Some(file) = &self.file
            && let Err(error) = file.save_new_tokens(session)
        {
            tracing::error!(%error, "the new tokens of a session could not be saved");
        }
    }
}
