//! What a handle does about its own session: begins it, keeps it, renews it, ends it.
//!
//! Invariant: all of it runs as the library's own tasks and, where it changes the session, in turn. The file of a kept session
//! is written before the session counts, and removed only while it holds the session that ended.

use std::sync::Arc;

use uuid::Uuid;

use super::{
    Auth, address,
    hasher::{Permit, Verdict},
    keeping::{Kept, SessionFile},
    nobody,
    sessions::invalid_credentials,
    statements::{self as sql, Account},
    token,
};
use crate::{
    database::{Principal, session_ended},
    error::{Error, ErrorKind, Result},
    model::{AuthEvent, Session, User, UserPatch},
};

impl Auth {
    pub(super) async fn enter(&self, email: &str, password: &str) -> Result<Session> {
        let session = self.desk.sign_in(email, password).await?;
        if !self.seat.is_fixed() {
            let _turn = self.seat.turn().await;
            self.begin(&session).await?;
        }
        Ok(session)
    }

    pub(super) async fn end(&self) -> Result<()> {
        let _turn = self.seat.turn().await;
        if let Some(session) = self.seat.session() {
            self.desk.sessions.end(&session).await?;
        }
        self.seat.leave();
        Ok(())
    }

    pub(super) async fn current(&self) -> Result<Option<Session>> {
        let _turn = self.seat.turn().await;
        let Some(session) = self.seat.session() else { return Ok(None) };
        let current = if session.expires_at <= self.desk.clock.now() {
            self.renew(&session).await
        } else {
            self.found(session).await
        };
        match current {
            Err(error) if error.kind() == ErrorKind::Unauthorized => {
                self.seat.leave();
                Ok(None)
            }
            current => current.map(Some),
        }
    }

    pub(super) async fn refresh(&self) -> Result<Session> {
        let _turn = self.seat.turn().await;
        let session = self.seat.session().ok_or_else(nobody)?;
        self.renew(&session).await
    }

    pub(super) async fn refresh_of(&self, refresh_token: &str) -> Result<Session> {
        let is_own = || self.seat.session().is_some_and(|own| own.refresh_token == refresh_token);
        if is_own() {
            let _turn = self.seat.turn().await;
            if is_own() {
                return self.rotate(refresh_token).await;
            }
        }
        self.desk.sessions.rotate(refresh_token).await
    }

    pub(super) async fn take_up(&self, refresh_token: &str) -> Result<Session> {
        if self.seat.is_fixed() {
            return Err(Error::invalid_input("This handle has a fixed caller; open a client, or use as_user"));
        }
        let _turn = self.seat.turn().await;
        let session = self.desk.sessions.rotate(refresh_token).await?;
        self.begin(&session).await?;
        Ok(session)
    }

    pub(super) async fn change(&self, current_password: &str, patch: UserPatch) -> Result<User> {
        let email = patch.email.as_deref().map(address::checked).transpose()?;
        patch.password.as_deref().map(address::check_password).transpose()?;
        let _turn = self.seat.turn().await;
        let (session, account, permit) = self.confirmed(current_password).await?;
        if patch == UserPatch::new() {
            return Ok(account.user);
        }
        let hash = match &patch.password {
            Some(password) => Some(permit.hash(password).await?),
            None => None,
        };
        drop(permit);
        let user = self.desk.change_account(&session, account, email, hash).await?;
        self.seat.take(&Session { user: user.clone(), ..session }, AuthEvent::UserUpdated);
        Ok(user)
    }

    pub(super) async fn delete_own(&self, current_password: &str) -> Result<()> {
        let _turn = self.seat.turn().await;
        let (session, account, permit) = self.confirmed(current_password).await?;
        drop(permit);
        self.desk.delete_account(&session, account).await?;
        self.seat.leave();
        Ok(())
    }

    /// Takes up the session that was kept in a file when the client was last open.
    pub(crate) async fn restore(&self) -> Result<()> {
        let (Some(file), Some(kept)) = (self.seat.file(), self.kept()?) else { return Ok(()) };
        let restored = match self.desk.sessions.find(&kept.access_token).await {
            Ok(found) => Ok(Session { refresh_token: kept.refresh_token.clone(), ..found }),
            Err(error) if error.kind() == ErrorKind::Unauthorized => {
                self.desk.sessions.rotate(&kept.refresh_token).await
            }
            Err(error) => Err(error),
        };
        match restored {
            Ok(session) => self.begin(&session).await,
            Err(error) if error.kind() == ErrorKind::Unauthorized => file.remove(&kept.refresh_token),
            Err(error) => Err(error),
        }
    }

    /// Makes a new session the handle's, or ends it when it cannot be kept.
    async fn begin(&self, session: &Session) -> Result<()> {
        if let Err(error) = self.seat.keep(session) {
            if let Err(error) = self.desk.sessions.end(session).await {
                tracing::error!(%error, "a session that could not be kept goes on until it expires");
            }
            return Err(error);
        }
        self.seat.take(session, AuthEvent::SignedIn);
        self.renew_in_time(session);
        Ok(())
    }

    /// The session as the database has it. Another process with the same file may have given it new tokens.
    async fn found(&self, session: Session) -> Result<Session> {
        match self.desk.sessions.find(&session.access_token).await {
            Ok(found) => Ok(Session { user: found.user, ..session }),
            Err(error) if error.kind() == ErrorKind::Unauthorized => {
                let kept = self.kept_of(&session)?.ok_or(error)?;
                let found = self.desk.sessions.find(&kept.access_token).await?;
                let session = Session { refresh_token: kept.refresh_token, ..found };
                self.seat.take(&session, AuthEvent::TokenRefreshed);
                self.renew_in_time(&session);
                Ok(session)
            }
            Err(error) => Err(error),
        }
    }

    /// New tokens for the handle's session. To be called in turn.
    async fn renew(&self, session: &Session) -> Result<Session> {
        // Of a handle made by `as_user` only the access token is known.
        if session.refresh_token.is_empty() {
            return Err(session_ended());
        }
        let kept = self.kept_of(session)?;
        let refresh_token = kept.as_ref().map_or(&session.refresh_token, |kept| &kept.refresh_token);
        self.rotate(refresh_token).await
    }

    /// New tokens for the handle's session, of which this is the refresh token.
    async fn rotate(&self, refresh_token: &str) -> Result<Session> {
        let _renewing = self.seat.acting().renewing();
        let session = self.desk.sessions.rotate(refresh_token).await?;
        // The old tokens are dead, so the session goes on also where the new ones cannot be kept.
        if let Err(error) = self.seat.keep(&session) {
            tracing::error!(%error, "the new tokens of a session could not be kept");
        }
        self.seat.take(&session, AuthEvent::TokenRefreshed);
        self.renew_in_time(&session);
        Ok(session)
    }

    fn kept(&self) -> Result<Option<Kept>> {
        Ok(self.seat.file().map(SessionFile::load).transpose()?.flatten())
    }

    /// Newer tokens of the same user, which another process has kept.
    fn kept_of(&self, session: &Session) -> Result<Option<Kept>> {
        let is_newer = |kept: &Kept| kept.user_id == session.user.id && kept.refresh_token != session.refresh_token;
        Ok(self.kept()?.filter(is_newer))
    }

    /// Refreshes the session by itself shortly before its access token ends, as long as the handle is there.
    fn renew_in_time(&self, session: &Session) {
        let left = session.expires_at.duration_since(self.desk.clock.now()).unsigned_abs();
        let (seat, desk) = (Arc::downgrade(&self.seat), Arc::downgrade(&self.desk));
        let renewal = self.desk.runtime.spawn(async move {
            tokio::time::sleep(left.mul_f32(0.9)).await;
            let (Some(seat), Some(desk)) = (seat.upgrade(), desk.upgrade()) else { return };
            // A task of its own: the new session replaces, and ends, this one.
            desk.runtime.clone().spawn(async move {
                if let Err(error) = (Auth { seat, desk }).refresh().await {
                    tracing::warn!(%error, "the session could not be refreshed ahead of time");
                }
            });
        });
        self.seat.set_renewal(renewal.abort_handle());
    }

    /// The signed-in user, and the hash of the access token that says so.
    pub(super) fn signed_in(&self) -> Result<(Uuid, String)> {
        let principal = self.seat.acting().principal();
        principal.check_expiry(self.desk.clock.now())?;
        match &*principal {
            Principal::User(pass) => Ok((pass.user_id, pass.access_hash.clone())),
            Principal::Anonymous | Principal::Service => Err(nobody()),
        }
    }

    /// The signed-in user's session and account, after the password was given once more.
    async fn confirmed(&self, password: &str) -> Result<(Session, Account, Permit)> {
        self.signed_in()?;
        let session = self.seat.session().ok_or_else(nobody)?;
        // Whose session has ended hears that, not whether the password was right.
        self.desk.sessions.find(&session.access_token).await?;
        let account = self.desk.scope.fetch(&sql::GET_ACCOUNT, &[session.user.id.into()], sql::account).await?.pop();
        let address = account.as_ref().map_or(session.user.email.as_str(), |account| &account.user.email);
        let (verdict, permit) = self.desk.check(&token::hash(address), password, account.as_ref()).await?;
        match account {
            Some(account) if verdict != Verdict::Wrong => Ok((session, account, permit)),
            _ => Err(invalid_credentials()),
        }
    }
}
