//! Accounts: users with a password. All handles of a client share one [`Accounts`].
//!
//! Invariant: each transaction that relies on a checked password confirms that the password has not changed since.

use uuid::Uuid;

use super::{
    email_address,
    password::{self, HashPermit, PasswordCheck, PasswordHasher},
    rate_limit::RateLimit,
    session_store::{SessionStore, VerifiedLogin, confirm_password, invalid_credentials, require_session},
    statements::{self as sql, Account},
    token,
};
use crate::{
    clock::Clock,
    database::{Credential, Scope, session_ended},
    error::{Error, ErrorKind, Result},
    model::{Session, User, UserPatch},
    threads::{BlockingPool, RuntimeHandle},
};

/// Creates, checks, changes and deletes accounts.
pub(crate) struct Accounts {
    /// The service's scope: no policy restricts these statements.
    scope: Scope,
    clock: Clock,
    sessions: SessionStore,
    rate_limit: RateLimit,
    hasher: PasswordHasher,
    runtime: RuntimeHandle,
    callbacks: BlockingPool,
}

impl Accounts {
    /// Work and timers run on `runtime`, callbacks of sessions on `callbacks`.
    pub(crate) fn new(service: Scope, clock: Clock, runtime: RuntimeHandle, callbacks: BlockingPool) -> Accounts {
        Accounts {
            sessions: SessionStore::new(service.clone(), clock.clone()),
            rate_limit: RateLimit::new(service.clone(), clock.clone()),
            hasher: PasswordHasher::new(runtime.clone()),
            scope: service,
            clock,
            runtime,
            callbacks,
        }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn sessions(&self) -> &SessionStore {
        &self.sessions
    }

    pub(super) fn runtime(&self) -> &RuntimeHandle {
        &self.runtime
    }

    pub(super) fn callbacks(&self) -> &BlockingPool {
        &self.callbacks
    }

    pub(super) async fn sign_up(&self, email: &str, password: &str) -> Result<User> {
        let email = email_address::validated(email)?;
        password::check_length(password)?;
        let hash = self.hasher.permit().await?.hash(password).await?;
        let now = self.clock.now();
        let insert = self.scope.write(move |transaction| {
            Box::pin(async move {
                let values = [Uuid::new_v4().into(), email.into(), now.into()];
                let user = transaction.fetch_optional(&sql::INSERT_USER, &values, sql::user).await?;
                let user = user.ok_or_else(Error::not_found)?;
                transaction.execute(&sql::INSERT_CREDENTIALS, &[user.id.into(), hash.into(), now.into()]).await?;
                Ok(user)
            })
        });
        insert.await
    }

    /// Checks the password and creates a session.
    pub(super) async fn sign_in(&self, email: &str, password: &str) -> Result<Session> {
        let email = email_address::normalised(email);
        let address_hash = token::hash(&email);
        // Fails without waiting for a hash permit.
        self.rate_limit.check(&address_hash).await?;
        // No account has an empty address or one with a NUL, which PostgreSQL would refuse as a parameter.
        let email = if email.contains('\0') { "" } else { &email };
        let account = self.scope.fetch_optional(&sql::GET_ACCOUNT_BY_EMAIL, &[email.into()], sql::account).await?;
        let (check, permit) = self.check_password(&address_hash, password, account.as_ref()).await?;
        drop(permit);
        let new_password_hash = match check {
            PasswordCheck::Wrong => return Err(invalid_credentials()),
            PasswordCheck::Right => None,
            PasswordCheck::RightAndRehashed(hash) => Some(hash),
        };
        let Account { user, password_hash } = account.ok_or_else(invalid_credentials)?;
        self.sessions.sign_in(VerifiedLogin { user, password_hash, new_password_hash, address_hash }).await
    }

    /// Changes the account of `session` and ends the user's other sessions. An empty patch only checks the password.
    /// `patch` is one that [`validated`] returned.
    pub(super) async fn update_user(&self, session: &Session, password: &str, patch: UserPatch) -> Result<User> {
        let (account, permit) = self.confirm_account(session, password).await?;
        if patch == UserPatch::new() {
            return Ok(account.user);
        }
        let hash = match &patch.password {
            Some(password) => Some(permit.hash(password).await?),
            None => None,
        };
        drop(permit);
        let access_hash = token::hash(&session.access_token);
        let (id, now) = (account.user.id, self.clock.now());
        let update = self.scope.write(move |transaction| {
            Box::pin(async move {
                confirm_password(transaction, id, &account.password_hash, &account.password_hash).await?;
                require_session(transaction, &access_hash).await?;
                if let Some(hash) = hash {
                    transaction.execute(&sql::SET_PASSWORD_HASH, &[id.into(), hash.into(), now.into()]).await?;
                }
                let values = [id.into(), patch.email.into(), now.into()];
                let user = transaction.fetch_optional(&sql::UPDATE_USER, &values, sql::user).await?;
                transaction.execute(&sql::DELETE_OTHER_SESSIONS, &[id.into(), access_hash.into()]).await?;
                user.ok_or_else(session_ended)
            })
        });
        update.await
    }

    /// Deletes the account of `session`.
    pub(super) async fn delete_own_user(&self, session: &Session, password: &str) -> Result<()> {
        let (account, permit) = self.confirm_account(session, password).await?;
        drop(permit);
        let access_hash = token::hash(&session.access_token);
        let delete = self.scope.write(move |transaction| {
            Box::pin(async move {
                let id = account.user.id;
                confirm_password(transaction, id, &account.password_hash, &account.password_hash).await?;
                require_session(transaction, &access_hash).await?;
                transaction.execute(&sql::DELETE_USER, &[id.into()]).await.map(drop)
            })
        });
        delete.await
    }

    pub(super) async fn delete_user(&self, id: Uuid) -> Result<()> {
        let delete = self.scope.write(move |transaction| {
            Box::pin(async move {
                // Locks in the order of a concurrent sign-in, so that the two cannot deadlock: the account first, then
                // its other rows.
                transaction.execute(&sql::LOCK_ACCOUNT, &[id.into()]).await?;
                match transaction.execute(&sql::DELETE_USER, &[id.into()]).await? {
                    0 => Err(Error::not_found()),
                    _ => Ok(()),
                }
            })
        });
        delete.await
    }

    /// Links the identity key `public_key` to the user of `credential`.
    pub(super) async fn link_identity(&self, credential: Credential, public_key: String) -> Result<()> {
        let Credential { user_id, access_hash, .. } = credential;
        let now = self.clock.now();
        let link = self.scope.write(move |transaction| {
            Box::pin(async move {
                require_session(transaction, &access_hash).await?;
                let key = [public_key.as_str().into()];
                let values = [public_key.as_str().into(), user_id.into(), now.into()];
                transaction.execute(&sql::LINK_IDENTITY, &values).await?;
                let holder = transaction.fetch_optional(&sql::GET_IDENTITY, &key, sql::id).await?;
                if holder == Some(user_id) { Ok(()) } else { Err(key_is_taken()) }
            })
        });
        link.await
    }

    /// Fetches the account of `session` and checks its password.
    async fn confirm_account(&self, session: &Session, password: &str) -> Result<(Account, HashPermit)> {
        // First, so that a session that has ended fails the same for a right and for a wrong password.
        self.sessions.get_session(&session.access_token).await?;
        let account = self.scope.fetch_optional(&sql::GET_ACCOUNT, &[session.user.id.into()], sql::account).await?;
        let email = account.as_ref().map_or(session.user.email.as_str(), |account| &account.user.email);
        let (check, permit) = self.check_password(&token::hash(email), password, account.as_ref()).await?;
        match account {
            Some(account) if check != PasswordCheck::Wrong => Ok((account, permit)),
            _ => Err(invalid_credentials()),
        }
    }

    /// Checks a password against an account, if there is one, and counts a failure. Checks and updates the rate limit
    /// while it holds the permit, so that concurrent guesses exceed the limit by no more than the number of permits.
    async fn check_password(
        &self,
        address_hash: &str,
        password: &str,
        account: Option<&Account>,
    ) -> Result<(PasswordCheck, HashPermit)> {
        let permit = self.hasher.permit().await?;
        self.rate_limit.check(address_hash).await?;
        let check = permit.check(password, account.map(|account| account.password_hash.clone())).await?;
        if check == PasswordCheck::Wrong {
            self.rate_limit.count_failure(address_hash).await?;
        }
        Ok((check, permit))
    }
}

/// Normalises the patch's address and checks the length of its password.
///
/// # Errors
/// `InvalidInput` for a malformed address and for a password of a wrong length.
pub(super) fn validated(patch: UserPatch) -> Result<UserPatch> {
    let email = patch.email.as_deref().map(email_address::validated).transpose()?;
    patch.password.as_deref().map(password::check_length).transpose()?;
    Ok(UserPatch { email, ..patch })
}

/// The error for an identity key that another user has linked.
fn key_is_taken() -> Error {
    Error::database(Some("23505"), ErrorKind::AlreadyExists, "")
}
