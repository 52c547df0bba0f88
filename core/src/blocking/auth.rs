//! Accounts and sessions without async.

use serde_json::Value as Json;
use uuid::Uuid;

use super::wait;
use crate::{
    auth::{AuthEvent, ImportReport, NewCredential, Session, SessionInfo, SignOutScope, User, UserPatch},
    callbacks::Subscription,
    error::Result,
};

// For the links of the documentation.
#[cfg(doc)]
use crate::{auth::identity_claim, error::Error};

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
    identities_of(user_id: Uuid) -> Vec<String>;
    identity_audience() -> String;
    create_recovery_token(email: &str) -> Option<String>;
    recover(recovery_token: &str, new_password: &str) -> Session;
    create_verification_token(user_id: Uuid) -> String;
    verify_email(verification_token: &str) -> User;
    list_users(limit: u32, after: Option<Uuid>) -> Vec<User>;
    find_user(email: &str) -> Option<User>;
    set_password(user_id: Uuid, password: &str) -> ();
    sessions_of(user_id: Uuid) -> Vec<SessionInfo>;
    end_session(user_id: Uuid, session_id: Uuid) -> ();
    end_sessions(user_id: Uuid) -> u64;
    import_credentials(rows: Vec<NewCredential>) -> ImportReport;
}

impl Auth<'_> {
    #[doc = text_of!(Auth.on_auth_state_change)]
    pub fn on_auth_state_change(
        &self,
        callback: impl FnMut(AuthEvent, Option<Session>) + Send + 'static,
    ) -> Subscription {
        self.0.on_auth_state_change(callback)
    }
}
