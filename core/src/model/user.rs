//! Users, their sessions, and what happens to them (SPEC 2.5, 5.3, 6.4).

use std::fmt;

use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

/// A row of `users`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct User {
    /// Primary key.
    pub id: Uuid,
    /// The address, trimmed and in lower case.
    pub email: String,
    /// When the user signed up.
    pub created_at: Timestamp,
    /// When the row last changed.
    pub updated_at: Timestamp,
}

/// What proves that somebody is signed in. Its tokens are secrets: `Debug` leaves them out, serialisation does not.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Session {
    /// Shows who is calling, for an hour.
    pub access_token: String,
    /// Gets the next pair of tokens, once, within 30 days. Empty where only the access token is known
    /// ([`Client::as_user`](crate::Client::as_user)).
    pub refresh_token: String,
    /// When the access token ends.
    pub expires_at: Timestamp,
    /// Whose session it is.
    pub user: User,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Session");
        out.field("expires_at", &self.expires_at).field("user", &self.user).finish_non_exhaustive()
    }
}

/// A change of one's own account: what is not set stays.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UserPatch {
    pub(crate) email: Option<String>,
    pub(crate) password: Option<String>,
}

impl UserPatch {
    /// Nothing changes.
    pub fn new() -> UserPatch {
        UserPatch::default()
    }

    /// Another address.
    #[must_use]
    pub fn email(mut self, email: impl Into<String>) -> UserPatch {
        self.email = Some(email.into());
        self
    }

    /// Another password, 8 to 1,024 bytes.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> UserPatch {
        self.password = Some(password.into());
        self
    }
}

impl fmt::Debug for UserPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("UserPatch");
        out.field("email", &self.email).field("changes_password", &self.password.is_some()).finish()
    }
}

/// What happened to a handle's session (SPEC 6.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuthEvent {
    /// What a listener is told first: the session there is, or none.
    InitialSession,
    /// Somebody signed in.
    SignedIn,
    /// The session ended.
    SignedOut,
    /// The session has new tokens.
    TokenRefreshed,
    /// The signed-in user has another address or password.
    UserUpdated,
}

impl AuthEvent {
    /// Every event.
    pub const ALL: [AuthEvent; 5] = [
        AuthEvent::InitialSession,
        AuthEvent::SignedIn,
        AuthEvent::SignedOut,
        AuthEvent::TokenRefreshed,
        AuthEvent::UserUpdated,
    ];

    /// Its name: `INITIAL_SESSION`, `SIGNED_IN`, …
    pub const fn as_str(self) -> &'static str {
        match self {
            AuthEvent::InitialSession => "INITIAL_SESSION",
            AuthEvent::SignedIn => "SIGNED_IN",
            AuthEvent::SignedOut => "SIGNED_OUT",
            AuthEvent::TokenRefreshed => "TOKEN_REFRESHED",
            AuthEvent::UserUpdated => "USER_UPDATED",
        }
    }
}
