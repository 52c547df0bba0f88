//! The blocking `Auth`: each method waits for the asynchronous method of the same name.

use serde_json::Value as Json;
use uuid::Uuid;

use super::{Client, wait};
use crate::{
    auth::{AuthEvent, ImportReport, NewCredential, Session, SignOutScope, User, UserPatch},
    callbacks::Subscription,
    error::Result,
};

area! { Auth:
    sign_up(email: &str, password: &str) -> User;
    sign_in(email: &str, password: &str) -> Session;
    create_session(email: &str, password: &str) -> Session;
    sign_out() -> ();
    sign_out_scope(scope: SignOutScope) -> ();
    get_session() -> Option<Session>;
    refresh_session() -> Session;
    refresh_session_of(refresh_token: &str) -> Session;
    set_session(refresh_token: &str) -> Session;
    update_user(current_password: &str, patch: UserPatch) -> User;
    delete_own_user(current_password: &str) -> ();
    delete_user(user_id: Uuid) -> ();
    link_identity(claim: &Json) -> ();
    unlink_identity(public_key: &str) -> ();
    identities() -> Vec<String>;
    identity_audience() -> String;
    create_recovery_token(email: &str) -> Option<String>;
    recover(recovery_token: &str, new_password: &str) -> Session;
    create_verification_token(user_id: Uuid) -> String;
    verify_email(verification_token: &str) -> User;
    list_users(limit: u32, after: Option<Uuid>) -> Vec<User>;
    find_user(email: &str) -> Option<User>;
    set_password(user_id: Uuid, password: &str) -> ();
    import_credentials(rows: Vec<NewCredential>) -> ImportReport;
}

impl Auth<'_> {
    /// See [`on_auth_state_change`](crate::auth::Auth::on_auth_state_change).
    pub fn on_auth_state_change(
        &self,
        callback: impl FnMut(AuthEvent, Option<Session>) + Send + 'static,
    ) -> Subscription {
        self.0.on_auth_state_change(callback)
    }
}

impl Client {
    /// Accounts and the session of this handle.
    pub fn auth(&self) -> Auth<'_> {
        Auth(self.0.auth())
    }

    /// See [`Client::with_client_key`](crate::Client::with_client_key).
    #[must_use]
    pub fn with_client_key(&self, client_key: &str) -> Client {
        Client(self.0.with_client_key(client_key))
    }

    /// See [`Client::as_user`](crate::Client::as_user).
    ///
    /// # Errors
    /// As [`Client::as_user`](crate::Client::as_user).
    pub fn as_user(&self, access_token: &str) -> Result<Client> {
        wait(self.0.as_user(access_token)).map(Client)
    }
}
