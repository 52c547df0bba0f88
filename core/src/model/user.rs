//! Users, their sessions and the events of a session (SPEC 2.5, 5.3, 6.4).

use std::fmt;

use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use super::{column::Readers, time_text};

record! {
    /// A row of `users`.
    #[derive(Eq)]
    pub struct User in "users" {
        /// The primary key.
        id: Uuid [is_key: true];
        /// The e-mail address, trimmed and in lower case, unless another program stored it.
        email: String;
        /// When the user signed up.
        #[serde(serialize_with = "time_text::time")]
        created_at: Timestamp = default_if_null [readers: Readers::Oneself];
        /// When the row last changed.
        #[serde(serialize_with = "time_text::time")]
        updated_at: Timestamp = default_if_null [readers: Readers::Oneself];
        /// When the user proved to receive mail at the address; `None` before, and after a change of the address.
        #[serde(serialize_with = "time_text::optional")]
        email_verified_at: Option<Timestamp> [is_joined: true];
    }
}

/// A session of a user. Its tokens are secrets: `Debug` omits them, serialisation does not.
///
/// # Examples
///
/// A server signs a user in and later acts for the user by the access token:
///
/// ```no_run
/// use townsquare::{Config, auth::Session, blocking::Client};
///
/// let client = Client::open(Config::new().data_dir("town"))?;
/// let session: Session = client.as_service().auth().sign_in("ann@town.example", "correct horse battery")?;
/// println!("{} until {}", session.user.email, session.expires_at);
/// let ann = client.as_user(&session.access_token)?;
/// let spaces = ann.spaces().get_user_spaces(session.user.id)?;
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Session {
    /// The session's row. Tokens are replaced; it stays.
    #[serde(skip)]
    pub(crate) id: Uuid,
    /// Identifies the user in calls. Valid for one hour.
    pub access_token: String,
    /// Replaces both tokens, once, within 30 days. Empty where only the access token is known
    /// ([`Client::as_user`](crate::Client::as_user)).
    pub refresh_token: String,
    /// When the access token expires.
    #[serde(serialize_with = "time_text::time")]
    pub expires_at: Timestamp,
    /// The signed-in user.
    pub user: User,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Session");
        out.field("expires_at", &self.expires_at).field("user", &self.user).finish_non_exhaustive()
    }
}

/// A session of a user, as the service lists it: without tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The id of the session. A refresh replaces the tokens and keeps the id.
    pub id: Uuid,
    /// When the user signed in.
    #[serde(serialize_with = "time_text::time")]
    pub created_at: Timestamp,
    /// When the session got its present tokens: at sign-in, or at the last refresh.
    #[serde(serialize_with = "time_text::time")]
    pub refreshed_at: Timestamp,
    /// When the session ends unless it is refreshed before.
    #[serde(serialize_with = "time_text::time")]
    pub expires_at: Timestamp,
}

/// A change of the signed-in user's account. Fields that are not set keep their value.
///
/// # Examples
///
/// ```
/// use townsquare::auth::UserPatch;
///
/// let patch = UserPatch::new().email("ann@new.example").password("a longer passphrase");
/// // `Debug` omits the password.
/// assert!(!format!("{patch:?}").contains("passphrase"));
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserPatch {
    pub(crate) email: Option<String>,
    pub(crate) password: Option<String>,
}

impl UserPatch {
    /// A patch that changes nothing.
    pub fn new() -> UserPatch {
        UserPatch::default()
    }

    /// Changes the e-mail address.
    #[must_use]
    pub fn email(mut self, email: impl Into<String>) -> UserPatch {
        self.email = Some(email.into());
        self
    }

    /// Changes the password: 8 to 1,024 bytes.
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

crate::model::named! {
    /// The sessions that a sign-out ends.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    #[non_exhaustive]
    pub enum SignOutScope {
        /// The session of the handle.
        #[default]
        Local = "local",
        /// Every other session of the user.
        Others = "others",
        /// Every session of the user.
        Global = "global",
    }

    /// Every scope.
    pub const ALL;

    /// The name of the scope in Python: `local`, `others`, `global`.
    ///
    /// ```
    /// assert_eq!(townsquare::auth::SignOutScope::Others.as_str(), "others");
    /// ```
    pub fn as_str;
}

crate::model::named! {
    /// An event of a handle's session.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum AuthEvent {
        /// The first event of each subscription, with the current session or none.
        InitialSession = "INITIAL_SESSION",
        /// A user signed in.
        SignedIn = "SIGNED_IN",
        /// The session ended: by a sign-out, or elsewhere, which the handle learns by its next call or refresh.
        SignedOut = "SIGNED_OUT",
        /// The session has new tokens.
        TokenRefreshed = "TOKEN_REFRESHED",
        /// The signed-in user's address or password changed. After a new password the session has new tokens.
        UserUpdated = "USER_UPDATED",
    }

    /// Every event.
    pub const ALL;

    /// The name of the event: `INITIAL_SESSION`, `SIGNED_IN`, `SIGNED_OUT`, `TOKEN_REFRESHED` or `USER_UPDATED`.
    pub fn as_str;
}
