//! Sign-in: accounts, sessions, and who a client acts for (SPEC 5.3, DESIGN 8).
//!
//! Invariant: as in every area, a method names a future of the core and hands it to the door; what hashes a password
//! is detached from the start. No password and no token is in a complaint: what is refused is named, never shown.

use pyo3::{prelude::*, types::PyDict};
use townsquare::{Clock, Operation, UserPatch};

use crate::{
    area::area,
    argument::{Id, Instant, Object, Text, Update, refused},
    convert::Nothing,
    errors::Failure,
    json::Shown,
    listener::{Callback, Subscription},
    user::{Session, User},
};

area! {
    "AuthMethods",
    /// Accounts and sessions: `Client.auth`.
    Auth,
    /// Accounts and sessions: `AsyncClient.auth`.
    AsyncAuth
}

#[pymethods]
impl Methods {
    /// Makes an account and returns its user; signs nobody in.
    fn sign_up<'py>(&self, py: Python<'py>, email: Text, password: Text) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter_detached(py, Operation::SignUp, |handle| async move {
            let (email, password) = (email.named("email")?, password.named("password")?);
            Ok(User(handle.client()?.auth().sign_up(&email, &password).await?))
        })
    }

    /// Signs in: the client acts as this user from here on.
    fn sign_in<'py>(&self, py: Python<'py>, email: Text, password: Text) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter_detached(py, Operation::SignIn, |handle| async move {
            let (email, password) = (email.named("email")?, password.named("password")?);
            Ok(Session(handle.client()?.auth().sign_in(&email, &password).await?))
        })
    }

    /// Ends the session everywhere; nobody being signed in is fine.
    fn sign_out<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::SignOut, |handle| async move {
            handle.client()?.auth().sign_out().await?;
            Ok(Nothing)
        })
    }

    /// The session, if there is one and it has not ended.
    fn get_session<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::GetSession, |handle| async move {
            Ok(handle.client()?.auth().get_session().await?.map(Session))
        })
    }

    /// New tokens for this client's session or, for servers, for the one of a refresh token.
    #[pyo3(signature = (refresh_token = None))]
    fn refresh_session<'py>(&self, py: Python<'py>, refresh_token: Option<Text>) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::RefreshSession, |handle| async move {
            let auth = handle.client()?.auth();
            Ok(Session(match refresh_token {
                Some(token) => auth.refresh_session_of(&token.named("refresh_token")?).await?,
                None => auth.refresh_session().await?,
            }))
        })
    }

    /// Takes up a session that was kept elsewhere.
    fn set_session<'py>(&self, py: Python<'py>, refresh_token: Text) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::SetSession, |handle| async move {
            let token = refresh_token.named("refresh_token")?;
            Ok(Session(handle.client()?.auth().set_session(&token).await?))
        })
    }

    /// Changes the signed-in user's address or password, and ends all the user's other sessions.
    #[pyo3(signature = (*, current_password, email = Update::Keep, password = Update::Keep))]
    #[pyo3(text_signature = "($self, *, current_password, email=..., password=...)")]
    fn update_user<'py>(
        &self,
        py: Python<'py>,
        current_password: Text,
        email: Update<Text>,
        password: Update<Text>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter_detached(py, Operation::UpdateUser, |handle| async move {
            let mut patch = UserPatch::new();
            if let Some(email) = given(email, "email")? {
                patch = patch.email(email);
            }
            if let Some(password) = given(password, "password")? {
                patch = patch.password(password);
            }
            let current = current_password.named("current_password")?;
            Ok(User(handle.client()?.auth().update_user(&current, patch).await?))
        })
    }

    /// Deletes oneself, with the password; or, by the service, anyone.
    #[pyo3(signature = (user_id = None, *, current_password = None))]
    fn delete_user<'py>(
        &self,
        py: Python<'py>,
        user_id: Option<Id>,
        current_password: Option<Text>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter_detached(py, Operation::DeleteUser, |handle| async move {
            let auth = handle.client()?.auth();
            let user_id = user_id.map(|id| id.named("user_id")).transpose()?;
            let password = current_password.map(|password| password.named("current_password")).transpose()?;
            match (user_id, password) {
                (None, Some(password)) => auth.delete_own_user(&password).await?,
                (Some(id), Some(password)) if auth.get_session().await?.is_some_and(|own| own.user.id == id) => {
                    auth.delete_own_user(&password).await?;
                }
                (Some(id), _) => auth.delete_user(id).await?,
                (None, None) => {
                    let missing =
                        "current_password is required to delete one's own account, user_id to delete another's";
                    return Err(refused(missing.to_owned()));
                }
            }
            Ok(Nothing)
        })
    }

    /// Links an identity key to the signed-in user, by a claim of `identity_claim`.
    fn link_identity<'py>(&self, py: Python<'py>, claim: Object) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::LinkIdentity, |handle| async move {
            handle.client()?.auth().link_identity(&claim.named("claim")?).await?;
            Ok(Nothing)
        })
    }

    /// Has `callback(event, session)` called now with INITIAL_SESSION, then with every event of this client's session.
    fn on_auth_state_change<'py>(&self, py: Python<'py>, callback: Callback) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, "on_auth_state_change", |handle| async move {
            let client = handle.client()?;
            if client.is_closed() {
                return Err(Failure::closed());
            }
            let subscription = client.auth().on_auth_state_change(move |event, session| {
                callback.call("on_auth_state_change", (event.as_str(), session.map(Session)));
            });
            Ok(Subscription::from(subscription))
        })
    }
}

/// What an update gives for a column that is never empty.
fn given(update: Update<Text>, name: &str) -> Result<Option<String>, Failure> {
    match update {
        Update::Keep => Ok(None),
        Update::Clear => Err(refused(format!("{name} is text, not None; leave it out to keep it"))),
        Update::Set(text) => text.named(name).map(Some),
    }
}

/// A claim that a user holds a private identity key, to be handed to `link_identity` within five minutes.
#[pyfunction]
#[pyo3(signature = (user_id, private_key, *, timestamp = None))]
pub(crate) fn identity_claim<'py>(
    py: Python<'py>,
    user_id: Id,
    private_key: Text,
    timestamp: Option<Instant>,
) -> PyResult<Bound<'py, PyDict>> {
    let made = timestamp.map_or_else(|| Clock::default().now(), |Instant(timestamp)| timestamp);
    let claim = || {
        let (user_id, key) = (user_id.named("user_id")?, private_key.named("private_key")?);
        Ok(townsquare::identity_claim(user_id, &key, made)?)
    };
    let claim = claim().map_err(|failure: Failure| failure.into_exception(py, None))?;
    Ok(Shown(&claim).into_pyobject(py)?.cast_into()?)
}
