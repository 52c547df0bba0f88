//! Sign-in: accounts, sessions and identity keys (SPEC 5.3, DESIGN 8), and its records.
//!
//! Invariants: a method that hashes a password releases the GIL from the start; no error message shows a password, a
//! key or a token, and the `repr` of a session shows none either.

use pyo3::{prelude::*, types::PyDict};
use townsquare::{
    Operation,
    auth::{NewCredential, SignOutScope, UserPatch},
    config::Clock,
};

use crate::{
    area::area,
    argument::{
        AfterArg, DateTimeArg, IdArg, IntArg, KeyedRecord, LIMIT_RANGE, LIST_PAGE, TextArg, Update, optional_text,
    },
    callback::{Callback, Subscription},
    errors::Failure,
    json::{JsonObjectArg, PyJson},
    record::{PyTime, record},
    rows::{RowArg, RowsArg},
    run::{MethodResult, NoValue},
};

/// The handle with limits for the client of a request, if the host names one.
fn for_client(client: &townsquare::Client, client_key: Option<TextArg>) -> Result<townsquare::Client, Failure> {
    let key = optional_text(client_key, "client_key")?;
    Ok(key.map_or_else(|| client.clone(), |key| client.with_client_key(&key)))
}

area! {
    "Auth",
    #[doc = text_of!(Auth)]
    Auth,
    #[doc = text_of!(AsyncAuth)]
    AsyncAuth
}

#[pymethods]
impl Methods {
    #[doc = text_of!(Auth.sign_up)]
    fn sign_up<'py>(&self, py: Python<'py>, email: TextArg, password: TextArg) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::SignUp, |client| async move {
            let (email, password) = (email.value("email")?, password.value("password")?);
            Ok(User::from(client.get()?.auth().sign_up(&email, &password).await?))
        })
    }

    #[doc = text_of!(Auth.sign_in)]
    #[pyo3(signature = (email, password, *, client_key = None))]
    fn sign_in<'py>(
        &self,
        py: Python<'py>,
        email: TextArg,
        password: TextArg,
        client_key: Option<TextArg>,
    ) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::SignIn, |client| async move {
            let (email, password) = (email.value("email")?, password.value("password")?);
            let client = for_client(client.get()?, client_key)?;
            Ok(Session::from(client.auth().sign_in(&email, &password).await?))
        })
    }

    #[doc = text_of!(Auth.create_session)]
    #[pyo3(signature = (email, password, *, client_key = None))]
    fn create_session<'py>(
        &self,
        py: Python<'py>,
        email: TextArg,
        password: TextArg,
        client_key: Option<TextArg>,
    ) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::SignIn, |client| async move {
            let (email, password) = (email.value("email")?, password.value("password")?);
            let client = for_client(client.get()?, client_key)?;
            Ok(Session::from(client.auth().create_session(&email, &password).await?))
        })
    }

    #[doc = text_of!(Auth.sign_out)]
    #[pyo3(signature = (scope = None))]
    #[pyo3(text_signature = "($self, scope='local')")]
    fn sign_out<'py>(&self, py: Python<'py>, scope: Option<TextArg>) -> MethodResult<'py> {
        self.runner.run(py, Operation::SignOut, |client| async move {
            let scope = scope.map_or(Ok(SignOutScope::Local), sign_out_scope)?;
            client.get()?.auth().sign_out_scope(scope).await?;
            Ok(NoValue)
        })
    }

    #[doc = text_of!(Auth.get_session)]
    fn get_session<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run(py, Operation::GetSession, |client| async move {
            Ok(client.get()?.auth().get_session().await?.map(Session::from))
        })
    }

    #[doc = text_of!(Auth.refresh_session)]
    #[pyo3(signature = (refresh_token = None))]
    fn refresh_session<'py>(&self, py: Python<'py>, refresh_token: Option<TextArg>) -> MethodResult<'py> {
        self.runner.run(py, Operation::RefreshSession, |client| async move {
            let auth = client.get()?.auth();
            Ok(Session::from(match refresh_token {
                Some(token) => auth.refresh_session_of(&token.value("refresh_token")?).await?,
                None => auth.refresh_session().await?,
            }))
        })
    }

    #[doc = text_of!(Auth.set_session)]
    fn set_session<'py>(&self, py: Python<'py>, refresh_token: TextArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::SetSession, |client| async move {
            let token = refresh_token.value("refresh_token")?;
            Ok(Session::from(client.get()?.auth().set_session(&token).await?))
        })
    }

    #[doc = text_of!(Auth.update_user)]
    #[pyo3(signature = (*, current_password, email = Update::Keep, password = Update::Keep))]
    #[pyo3(text_signature = "($self, *, current_password, email=..., password=...)")]
    fn update_user<'py>(
        &self,
        py: Python<'py>,
        current_password: TextArg,
        email: Update<TextArg>,
        password: Update<TextArg>,
    ) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::UpdateUser, |client| async move {
            let mut patch = UserPatch::new();
            if let Some(email) = required_text(email, "email")? {
                patch = patch.email(email);
            }
            if let Some(password) = required_text(password, "password")? {
                patch = patch.password(password);
            }
            let current = current_password.value("current_password")?;
            Ok(User::from(client.get()?.auth().update_user(&current, patch).await?))
        })
    }

    #[doc = text_of!(Auth.delete_user)]
    #[pyo3(signature = (user_id = None, *, current_password = None))]
    fn delete_user<'py>(
        &self,
        py: Python<'py>,
        user_id: Option<IdArg>,
        current_password: Option<TextArg>,
    ) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::DeleteUser, |client| async move {
            let auth = client.get()?.auth();
            let user_id = user_id.map(|id| id.value("user_id")).transpose()?;
            let password = optional_text(current_password, "current_password")?;
            // The core has two methods and none that chooses between them by the id.
            match (user_id, password) {
                (None, Some(password)) => auth.delete_own_user(&password).await?,
                (Some(id), Some(password)) if auth.get_session().await?.is_some_and(|own| own.user.id == id) => {
                    auth.delete_own_user(&password).await?;
                }
                (Some(id), _) => auth.delete_user(id).await?,
                (None, None) => {
                    return Err(Failure::invalid_input(
                        "current_password is required to delete one's own account, user_id to delete another's",
                    ));
                }
            }
            Ok(NoValue)
        })
    }

    #[doc = text_of!(Auth.link_identity)]
    fn link_identity<'py>(&self, py: Python<'py>, claim: JsonObjectArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::LinkIdentity, |client| async move {
            client.get()?.auth().link_identity(&claim.value("claim")?).await?;
            Ok(NoValue)
        })
    }

    #[doc = text_of!(Auth.unlink_identity)]
    fn unlink_identity<'py>(&self, py: Python<'py>, public_key: TextArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::UnlinkIdentity, |client| async move {
            client.get()?.auth().unlink_identity(&public_key.value("public_key")?).await?;
            Ok(NoValue)
        })
    }

    #[doc = text_of!(Auth.identities)]
    fn identities<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run(py, Operation::Identities, |client| async move { Ok(client.get()?.auth().identities().await?) })
    }

    #[doc = text_of!(Auth.identities_of)]
    fn identities_of<'py>(&self, py: Python<'py>, user_id: IdArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::Identities, |client| async move {
            Ok(client.get()?.auth().identities_of(user_id.value("user_id")?).await?)
        })
    }

    #[doc = text_of!(Auth.sessions_of)]
    fn sessions_of<'py>(&self, py: Python<'py>, user_id: IdArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::SessionsOf, |client| async move {
            let sessions = client.get()?.auth().sessions_of(user_id.value("user_id")?).await?;
            Ok(sessions.into_iter().map(SessionInfo::from).collect::<Vec<_>>())
        })
    }

    #[doc = text_of!(Auth.end_session)]
    fn end_session<'py>(&self, py: Python<'py>, user_id: IdArg, session_id: IdArg) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::EndSession, |client| async move {
            let (user_id, session_id) = (user_id.value("user_id")?, session_id.value("session_id")?);
            client.get()?.auth().end_session(user_id, session_id).await?;
            Ok(NoValue)
        })
    }

    #[doc = text_of!(Auth.end_sessions)]
    fn end_sessions<'py>(&self, py: Python<'py>, user_id: IdArg) -> MethodResult<'py> {
        self.runner.run_write(py, Operation::EndSessions, |client| async move {
            Ok(client.get()?.auth().end_sessions(user_id.value("user_id")?).await?)
        })
    }

    #[doc = text_of!(Auth.identity_audience)]
    fn identity_audience<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run(py, Operation::IdentityAudience, |client| async move {
            Ok(client.get()?.auth().identity_audience().await?)
        })
    }

    #[doc = text_of!(Auth.create_recovery_token)]
    fn create_recovery_token<'py>(&self, py: Python<'py>, email: TextArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::CreateRecoveryToken, |client| async move {
            Ok(client.get()?.auth().create_recovery_token(&email.value("email")?).await?)
        })
    }

    #[doc = text_of!(Auth.recover)]
    fn recover<'py>(&self, py: Python<'py>, recovery_token: TextArg, new_password: TextArg) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::Recover, |client| async move {
            let (token, password) = (recovery_token.value("recovery_token")?, new_password.value("new_password")?);
            Ok(Session::from(client.get()?.auth().recover(&token, &password).await?))
        })
    }

    #[doc = text_of!(Auth.create_verification_token)]
    fn create_verification_token<'py>(&self, py: Python<'py>, user_id: IdArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::CreateVerificationToken, |client| async move {
            Ok(client.get()?.auth().create_verification_token(user_id.value("user_id")?).await?)
        })
    }

    #[doc = text_of!(Auth.verify_email)]
    fn verify_email<'py>(&self, py: Python<'py>, verification_token: TextArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::VerifyEmail, |client| async move {
            let token = verification_token.value("verification_token")?;
            Ok(User::from(client.get()?.auth().verify_email(&token).await?))
        })
    }

    #[doc = text_of!(Auth.list_users)]
    #[pyo3(signature = (limit = IntArg::of(LIST_PAGE), *, after = None))]
    #[pyo3(text_signature = "($self, limit=100, *, after=None)")]
    fn list_users<'py>(&self, py: Python<'py>, limit: IntArg<u32>, after: Option<AfterArg<User>>) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::ListUsers, |client| async move {
            let (limit, after) = (limit.value("limit", LIMIT_RANGE)?, after.map(AfterArg::value).transpose()?);
            let rows = client.get()?.auth().list_users(limit, after).await?;
            Ok(rows.into_iter().map(User::from).collect::<Vec<_>>())
        })
    }

    #[doc = text_of!(Auth.find_user)]
    fn find_user<'py>(&self, py: Python<'py>, email: TextArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::FindUser, |client| async move {
            Ok(client.get()?.auth().find_user(&email.value("email")?).await?.map(User::from))
        })
    }

    #[doc = text_of!(Auth.set_password)]
    fn set_password<'py>(&self, py: Python<'py>, user_id: IdArg, password: TextArg) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::SetPassword, |client| async move {
            let (user_id, password) = (user_id.value("user_id")?, password.value("password")?);
            client.get()?.auth().set_password(user_id, &password).await?;
            Ok(NoValue)
        })
    }

    #[doc = text_of!(Auth.import_credentials)]
    fn import_credentials<'py>(&self, py: Python<'py>, rows: RowsArg<'py>) -> MethodResult<'py> {
        let rows = rows.read(self.runner.client(), "rows", |row: &mut RowArg<'py>| {
            let (user_id, email, hash) = (row.take("user_id")?, row.take("email")?, row.take("password_hash")?);
            Ok(new_credential(&row.path(""), user_id, email, hash))
        })?;
        self.runner.run_write(py, Operation::ImportCredentials, |client| async move {
            Ok(ImportReport::from(client.get()?.auth().import_credentials(rows?).await?))
        })
    }

    #[doc = text_of!(Auth.on_auth_state_change)]
    fn on_auth_state_change<'py>(&self, py: Python<'py>, callback: Callback) -> MethodResult<'py> {
        self.runner.run(py, "on_auth_state_change", |client| async move {
            let client = client.get()?;
            if client.is_closed() {
                return Err(Failure::closed());
            }
            let subscription = client.auth().on_auth_state_change(move |event, session| {
                callback.call("on_auth_state_change", (event.as_str(), session.map(Session::from)));
            });
            Ok(Subscription::from(subscription))
        })
    }
}

/// A row of `import_credentials`. `prefix` starts the name of each value in an error.
fn new_credential(
    prefix: &str,
    user_id: Option<IdArg>,
    email: Option<TextArg>,
    password_hash: Option<TextArg>,
) -> Result<NewCredential, Failure> {
    let mut credential = NewCredential::default();
    // Without the value, which is a secret if the columns were mixed up.
    let not_an_id = |_| Failure::invalid_input(format!("{prefix}user_id is not a UUID"));
    credential.user_id = user_id.map(|id| id.value("").map_err(not_an_id)).transpose()?;
    credential.email = optional_text(email, &format!("{prefix}email"))?;
    credential.password_hash = optional_text(password_hash, &format!("{prefix}password_hash"))?.unwrap_or_default();
    Ok(credential)
}

/// The new value of a column that cannot be cleared.
fn required_text(update: Update<TextArg>, name: &str) -> Result<Option<String>, Failure> {
    match update {
        Update::Keep => Ok(None),
        Update::Clear => Err(Failure::invalid_input(format!("{name} is text, not None; leave it out to keep it"))),
        Update::Set(text) => text.value(name).map(Some),
    }
}

fn sign_out_scope(scope: TextArg) -> Result<SignOutScope, Failure> {
    let name = scope.value("scope")?;
    let known = SignOutScope::ALL.into_iter().find(|scope| scope.as_str() == name);
    known.ok_or_else(|| Failure::invalid_input("scope is 'local', 'others' or 'global'"))
}

#[doc = text_of!(identity_claim)]
#[pyfunction]
#[pyo3(signature = (user_id, private_key, audience, *, timestamp = None))]
pub(crate) fn identity_claim<'py>(
    py: Python<'py>,
    user_id: IdArg,
    private_key: TextArg,
    audience: TextArg,
    timestamp: Option<DateTimeArg>,
) -> PyResult<Bound<'py, PyDict>> {
    let claim = || {
        let timestamp = timestamp.map_or_else(|| Ok(Clock::default().now()), |time| time.value("timestamp"))?;
        let (user_id, key) = (user_id.value("user_id")?, private_key.value("private_key")?);
        Ok(townsquare::auth::identity_claim(user_id, &key, &audience.value("audience")?, timestamp)?)
    };
    let claim = claim().map_err(|failure: Failure| failure.into_exception(py, None))?;
    Ok(PyJson(&claim).into_pyobject(py)?.cast_into()?)
}

record! {
    #[doc = text_of!(User)]
    User(townsquare::auth::User) [] as user, hash [id] => {
        /// Primary key.
        id: "UUID" = user.id,
        /// The address, trimmed and in lower case.
        email: "str" = &user.email,
        /// When the user signed up, UTC.
        created_at: "datetime" = PyTime(user.created_at),
        /// When the row last changed, UTC.
        updated_at: "datetime" = PyTime(user.updated_at),
        /// When the user proved to receive mail at the address, UTC, or None.
        email_verified_at: "Optional[datetime]" = user.email_verified_at.map(PyTime),
    }
}

record! {
    #[doc = text_of!(ImportReport)]
    ImportReport(townsquare::auth::ImportReport) [] as report, hash [imported, unchanged] => {
        /// The users who had no password and have the imported one.
        imported: "int" = report.imported,
        /// The users who had a password, which stays.
        unchanged: "int" = report.unchanged,
    }
}

record! {
    #[doc = text_of!(Session)]
    Session(townsquare::auth::Session) [] as session, hash [expires_at, user],
    secret [access_token, refresh_token] => {
        /// Proves the user's identity for one hour.
        access_token: "str" = &session.access_token,
        /// Gets the next pair of tokens, once. Empty for a handle of `as_user`.
        refresh_token: "str" = &session.refresh_token,
        /// When the access token expires, UTC.
        expires_at: "datetime" = PyTime(session.expires_at),
        /// The signed-in user.
        user: "User" = User::from(session.user.clone()),
    }
}

record! {
    #[doc = text_of!(SessionInfo)]
    SessionInfo(townsquare::auth::SessionInfo) [] as session, hash [id] => {
        /// The id of the session.
        id: "UUID" = session.id,
        /// When the user signed in, UTC.
        created_at: "datetime" = PyTime(session.created_at),
        /// When the session got its present tokens, UTC.
        refreshed_at: "datetime" = PyTime(session.refreshed_at),
        /// When the session ends unless it is refreshed before, UTC.
        expires_at: "datetime" = PyTime(session.expires_at),
    }
}

impl KeyedRecord for User {
    const KEY: &'static str = "id";
}
