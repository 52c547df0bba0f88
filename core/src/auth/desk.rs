//! What all handles of a client share of sign-in: accounts, and the checking of passwords.

use std::sync::Arc;

use tokio::runtime::Handle;
use uuid::Uuid;

use super::{
    address,
    hasher::{Hasher, Permit, Verdict},
    seat::Seat,
    sessions::{self, Admission, Sessions, invalid_credentials},
    statements::{self as sql, Account},
    throttle::Throttle,
    token,
};
use crate::{
    clock::Clock,
    database::{Scope, Transaction, session_ended},
    error::{Error, ErrorKind, Result},
    model::{Session, User},
};

pub(crate) struct Desk {
    /// The service's: what is asked here, passwords and tokens answer.
    pub(super) scope: Scope,
    pub(super) clock: Clock,
    pub(super) sessions: Sessions,
    throttle: Throttle,
    hasher: Hasher,
    pub(super) runtime: Handle,
    /// Where listeners are called.
    pub(super) callbacks: Handle,
}

impl Desk {
    pub(crate) fn new(service: Scope, clock: Clock, runtime: Handle, callbacks: Handle) -> Desk {
        let sessions = Sessions::new(service.clone(), clock.clone());
        let throttle = Throttle::new(service.clone(), clock.clone());
        Desk { scope: service, clock, sessions, throttle, hasher: Hasher::new(runtime.clone()), runtime, callbacks }
    }

    /// The seat of a handle for one session.
    ///
    /// # Errors
    /// `Unauthorized` when the session has ended.
    pub(crate) async fn seat_of(&self, access_token: &str) -> Result<Arc<Seat>> {
        Ok(Arc::new(Seat::of(self.sessions.find(access_token).await?)))
    }

    /// Runs work on the client's own threads, to its end: what a caller who went away has begun in the database is taken
    /// note of here as well, failures are counted, and nobody's turn waits for an executor that is not polled.
    pub(super) async fn see_through<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.runtime.spawn(work).await.unwrap_or_else(|error| {
            Err(if error.is_cancelled() {
                Error::closed()
            } else {
                // What it panicked with stays out: it may quote what it worked on.
                Error::new(ErrorKind::Internal, "the operation panicked")
            })
        })
    }

    pub(super) async fn sign_up(&self, email: &str, password: &str) -> Result<User> {
        let email = address::checked(email)?;
        address::check_password(password)?;
        let hash = self.hasher.permit().await?.hash(password).await?;
        let now = self.clock.now();
        let insert = self.scope.write(move |transaction| {
            Box::pin(async move {
                let values = [Uuid::new_v4().into(), email.into(), now.into()];
                let user = transaction.fetch(&sql::INSERT_USER, &values, sql::user).await?.pop();
                let user = user.ok_or_else(Error::not_found)?;
                transaction.execute(&sql::INSERT_CREDENTIALS, &[user.id.into(), hash.into(), now.into()]).await?;
                Ok(user)
            })
        });
        insert.await
    }

    pub(super) async fn sign_in(&self, email: &str, password: &str) -> Result<Session> {
        let email = address::normalised(email);
        let address_hash = token::hash(&email);
        // Answered at once: not even a turn is waited for.
        self.throttle.check(&address_hash).await?;
        // No address has a NUL in it, and PostgreSQL takes none.
        let known = if email.contains('\0') { "" } else { &email };
        let account = self.scope.fetch(&sql::GET_ACCOUNT_BY_EMAIL, &[known.into()], sql::account).await?.pop();
        let (verdict, permit) = self.check(&address_hash, password, account.as_ref()).await?;
        drop(permit);
        let renewed_hash = match verdict {
            Verdict::Wrong => None,
            Verdict::Right => Some(None),
            Verdict::RightAndRenewed(hash) => Some(Some(hash)),
        };
        let (Some(renewed_hash), Some(Account { user, password_hash })) = (renewed_hash, account) else {
            return Err(invalid_credentials());
        };
        let admission = Admission { user, password_hash, renewed_hash, address_hash };
        self.sessions.begin(admission).await?.ok_or_else(invalid_credentials)
    }

    /// Checks a password, and counts it when it is wrong. The count is looked at and added to while the permit is held, so no
    /// more guesses slip past it than there are permits.
    pub(super) async fn check(
        &self,
        address_hash: &str,
        password: &str,
        account: Option<&Account>,
    ) -> Result<(Verdict, Permit)> {
        let permit = self.hasher.permit().await?;
        self.throttle.check(address_hash).await?;
        let is_possible = password.len() <= address::LONGEST_PASSWORD;
        let kept = account.filter(|_| is_possible).map(|account| account.password_hash.clone());
        let verdict = permit.verify(if is_possible { password } else { "" }, kept).await?;
        if verdict == Verdict::Wrong {
            self.throttle.failed(address_hash.to_owned()).await?;
        }
        Ok((verdict, permit))
    }

    /// Changes an account and ends its other sessions.
    pub(super) async fn change_account(
        &self,
        session: &Session,
        account: Account,
        email: Option<String>,
        hash: Option<String>,
    ) -> Result<User> {
        let access_hash = token::hash(&session.access_token);
        let (id, now) = (account.user.id, self.clock.now());
        let change = self.scope.write(move |transaction| {
            Box::pin(async move {
                lock(transaction, id, &account.password_hash).await?;
                sessions::require(transaction, &access_hash).await?;
                if let Some(hash) = hash {
                    transaction.execute(&sql::SET_HASH, &[id.into(), hash.into(), now.into()]).await?;
                }
                let values = [id.into(), email.into(), now.into()];
                let changed = transaction.fetch(&sql::UPDATE_USER, &values, sql::user).await?;
                transaction.execute(&sql::END_OTHER_SESSIONS, &[id.into(), access_hash.into()]).await?;
                changed.into_iter().next().ok_or_else(session_ended)
            })
        });
        change.await
    }

    /// Deletes an account whose password was checked just now.
    pub(super) async fn delete_account(&self, session: &Session, account: Account) -> Result<()> {
        let access_hash = token::hash(&session.access_token);
        let delete = self.scope.write(move |transaction| {
            Box::pin(async move {
                let id = account.user.id;
                lock(transaction, id, &account.password_hash).await?;
                sessions::require(transaction, &access_hash).await?;
                transaction.execute(&sql::DELETE_USER, &[id.into()]).await.map(drop)
            })
        });
        delete.await
    }

    pub(super) async fn delete_user(&self, id: Uuid) -> Result<()> {
        let delete = self.scope.write(move |transaction| {
            Box::pin(async move {
                // In the order of a sign-in that is under way: the account, then what belongs to it.
                transaction.execute(&sql::LOCK, &[id.into()]).await?;
                match transaction.execute(&sql::DELETE_USER, &[id.into()]).await? {
                    0 => Err(Error::not_found()),
                    _ => Ok(()),
                }
            })
        });
        delete.await
    }
}

/// Holds an account until the transaction ends, if its password is still the one that was checked.
async fn lock(transaction: &mut Transaction<'_>, id: Uuid, password_hash: &str) -> Result<()> {
    match transaction.execute(&sql::RENEW_HASH, &[id.into(), password_hash.into(), password_hash.into()]).await? {
        0 => Err(invalid_credentials()),
        _ => Ok(()),
    }
}
