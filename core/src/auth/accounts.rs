//! Accounts: users with a password. All handles of a client share one [`Accounts`].
//!
//! Invariant: each transaction that relies on a checked password confirms that the password has not changed since.

use jiff::Timestamp;
use uuid::Uuid;

use super::{
    email_address,
    mailed_token::Purpose,
    password::{self, HashPermit, PasswordCheck, PasswordHasher, PermitRequest},
    rate_limit::{self, CountKey, RateLimit},
    session_store::{
        KNOWN, SessionStore, TokenPair, VerifiedLogin, confirm_password, invalid_credentials, require_session,
    },
    statements::{self as sql, Account},
    token,
};
use crate::{
    client_key::ClientKey,
    clock::{Clock, earlier},
    database::{Scope, Transaction, UserEntries, session_ended},
    error::{Error, Result},
    model::{Session, User, UserPatch},
    threads::{BlockingPool, RuntimeHandle},
    validate::Limits,
};

/// How often an operation checks the password when the stored hash changes meanwhile: a sign-in replaces an outdated hash
/// by a new one of the same password.
const PASSWORD_CHECKS: u32 = 3;

/// How often a deletion begins again because the user fills the account meanwhile.
pub(super) const DELETIONS: u32 = 8;

/// Creates, checks, changes and deletes accounts.
pub(crate) struct Accounts {
    /// The service's scope: no policy restricts these statements.
    pub(super) scope: Scope,
    pub(super) clock: Clock,
    pub(super) sessions: SessionStore,
    pub(super) rate_limit: RateLimit,
    pub(super) hasher: PasswordHasher,
    pub(super) limits: Limits,
    /// The option `identity_audience`.
    pub(super) audience_option: Option<String>,
    pub(super) runtime: RuntimeHandle,
    pub(super) callbacks: BlockingPool,
}

/// The options of accounts.
pub(crate) struct AccountOptions {
    pub(crate) sign_up_limit: u32,
    pub(crate) identity_audience: Option<String>,
    pub(crate) limits: Limits,
}

/// A change of an account after the password was checked, ready to be stored.
#[derive(Clone)]
pub(super) struct AccountChange {
    account: Account,
    email: Option<String>,
    password_hash: Option<String>,
}

/// The counts of failures that a sign-in adds to.
struct SignInKeys {
    /// The keys of the counts: first the client's, then the address's.
    counts: Vec<CountKey>,
    /// The account, if its user has signed in from the client before.
    known_account: Option<CountKey>,
}

impl Accounts {
    /// Work and timers run on `runtime`, callbacks of sessions on `callbacks`.
    pub(crate) fn new(
        service: Scope,
        clock: Clock,
        options: AccountOptions,
        runtime: RuntimeHandle,
        callbacks: BlockingPool,
    ) -> Accounts {
        Accounts {
            sessions: SessionStore::new(service.clone(), clock.clone()),
            rate_limit: RateLimit::new(service.clone(), clock.clone(), options.sign_up_limit),
            audience_option: options.identity_audience,
            hasher: PasswordHasher::new(runtime.clone()),
            limits: options.limits,
            scope: service,
            clock,
            runtime,
            callbacks,
        }
    }

    /// Returns the account if its user has signed in from the client before.
    ///
    /// # Errors
    /// `RateLimited` while sign-ins by the client or with the address have to wait. [`Accounts::sign_in`] checks this again.
    pub(super) async fn check_sign_in(&self, email: &str, client: Option<ClientKey>) -> Result<Option<CountKey>> {
        let email = email_address::normal(email).ok();
        let SignInKeys { counts, known_account } = self.sign_in_keys(email.as_deref(), client).await?;
        for key in &counts {
            self.rate_limit.check(key).await?;
        }
        Ok(known_account)
    }

    /// A client from which the user has signed in before has its own count for the address.
    async fn sign_in_keys(&self, email: Option<&str>, client: Option<ClientKey>) -> Result<SignInKeys> {
        let mut keys = SignInKeys { counts: client.map(CountKey::client).into_iter().collect(), known_account: None };
        let Some(email) = email else { return Ok(keys) };
        let address = CountKey::address(email);
        if let Some(client) = client {
            let of_client = CountKey::known_client(email, client);
            let key = [of_client.hash().into(), earlier(self.clock.now(), KNOWN).into()];
            if self.scope.fetch_optional(&sql::GET_KNOWN_CLIENT, &key, sql::id).await?.is_some() {
                keys.counts.push(of_client);
                keys.known_account = Some(address);
                return Ok(keys);
            }
        }
        keys.counts.push(address);
        Ok(keys)
    }

    /// Returns the account.
    ///
    /// # Errors
    /// `RateLimited` while confirmations of the user's password have to wait. The operations check this again.
    pub(super) async fn check_user(&self, id: Uuid) -> Result<Option<CountKey>> {
        let account = CountKey::user(id);
        self.rate_limit.check(&account).await?;
        Ok(Some(account))
    }

    /// Creates an account. `email` and `password` have been validated.
    pub(super) async fn sign_up(&self, permit: HashPermit, email: String, password: &str) -> Result<User> {
        let hash = permit.hash(password).await?;
        drop(permit);
        let (now, rate_limit) = (self.clock.now(), self.rate_limit.clone());
        let insert = self.scope.write(move |transaction| {
            Box::pin(async move {
                rate_limit.count_sign_up(transaction, now).await?;
                let id = Uuid::new_v4();
                if transaction.execute(&sql::INSERT_USER, &[id.into(), email.into(), now.into()]).await? == 0 {
                    return Err(address_is_taken());
                }
                transaction.execute(&sql::SET_CREDENTIALS, &[id.into(), hash.into(), now.into()]).await?;
                get_user(transaction, id).await?.ok_or_else(Error::not_found)
            })
        });
        insert.await
    }

    /// Checks the password and creates a session. Text that is no address fails after the same time as an unknown one.
    pub(super) async fn sign_in(
        &self,
        mut permit: HashPermit,
        email: &str,
        password: &str,
        client: Option<ClientKey>,
    ) -> Result<Session> {
        let Ok(email) = email_address::normal(email) else {
            let keys = self.sign_in_keys(None, client).await?;
            self.check_password(&permit, &keys.counts, password, None).await?;
            return Err(self.refusal(&permit, None).await);
        };
        for _ in 0..PASSWORD_CHECKS {
            let SignInKeys { counts, known_account } = self.sign_in_keys(Some(&email), client).await?;
            let key = [email.as_str().into()];
            let account = self.scope.fetch_optional(&sql::GET_ACCOUNT_BY_EMAIL, &key, sql::account).await?;
            // Text that cannot be a password fails like a sign-in with an unknown address.
            let account = account.filter(|_| password::can_be_checked(password));
            let check = self.check_password(&permit, &counts, password, account.as_ref()).await?;
            let new_password_hash = match check {
                PasswordCheck::Wrong => return Err(self.refusal(&permit, account.as_ref()).await),
                PasswordCheck::Right => None,
                PasswordCheck::RightAndRehashed(hash) => Some(hash),
            };
            drop(permit);
            let Account { user, password_hash } = account.ok_or_else(invalid_credentials)?;
            let known_client = client.map(|client| CountKey::known_client(&email, client));
            // The count of the address. The client's count stays: it may know the password of one account and guess others.
            let count_key = counts.into_iter().next_back();
            let login = VerifiedLogin { user, password_hash, new_password_hash, count_key, known_client };
            if let Some(session) = self.sessions.sign_in(login).await? {
                return Ok(session);
            }
            // Another sign-in replaced the hash by a new one of the same password, or the password was changed.
            permit = self.hasher.permit(PermitRequest { client, known_account }).await?;
        }
        Err(invalid_credentials())
    }

    /// Waits, and returns the error of a refused sign-in. All refusals take equally long: while the database has bcrypt
    /// hashes, each takes the time of an Argon2 hash and of a bcrypt hash.
    async fn refusal(&self, permit: &HashPermit, account: Option<&Account>) -> Error {
        let is_bcrypt = |account: &Account| account.password_hash.starts_with("$2");
        let spent = async {
            if account.is_some_and(is_bcrypt) {
                return permit.hash("").await.map(drop);
            }
            let cost = self.scope.fetch_optional(&sql::GET_BCRYPT_COST, &[], sql::text).await?;
            match cost.and_then(|cost| cost.parse().ok()) {
                Some(cost) => permit.spend_bcrypt(cost).await,
                None => Ok(()),
            }
        };
        spent.await.err().unwrap_or_else(invalid_credentials)
    }

    /// Checks the password of the account of `session` and hashes the new one. `patch` is one that [`validated`] returned.
    pub(super) async fn confirm_change(
        &self,
        permit: &HashPermit,
        session: &Session,
        password: &str,
        patch: UserPatch,
    ) -> Result<AccountChange> {
        let account = self.confirm_account(permit, session, password).await?;
        let password_hash = match &patch.password {
            Some(password) => Some(permit.hash(password).await?),
            None => None,
        };
        let email = patch.email.filter(|email| *email != account.user.email);
        Ok(AccountChange { account, email, password_hash })
    }

    /// Stores a change of the account of `session` and ends the user's other sessions. A new password also replaces the
    /// tokens of `session`; a new address voids mailed tokens and the verification of the old one. Returns the session.
    ///
    /// Checks `password` again if the stored hash changed since [`confirm_change`](Accounts::confirm_change). The caller
    /// passes the permit of that check, because waiting for a new one could deadlock: other callers hold permits while they
    /// wait for the session lock that this caller holds.
    pub(super) async fn update_user(
        &self,
        permit: HashPermit,
        session: &Session,
        password: &str,
        mut change: AccountChange,
        tokens: Option<TokenPair>,
    ) -> Result<Session> {
        for _ in 0..PASSWORD_CHECKS {
            if let Some(session) = self.store_change(session, &change, tokens.clone()).await? {
                return Ok(session);
            }
            change.account = self.confirm_account(&permit, session, password).await?;
        }
        Err(invalid_credentials())
    }

    /// Stores a change of the account of `session`. Returns `None`, and stores nothing, when the password's hash was
    /// replaced, or the user deleted, since the check.
    async fn store_change(
        &self,
        session: &Session,
        change: &AccountChange,
        tokens: Option<TokenPair>,
    ) -> Result<Option<Session>> {
        let access_hash = token::hash(&session.access_token);
        let (id, now) = (change.account.user.id, self.clock.now());
        let AccountChange { account: Account { user: old, password_hash: checked_hash }, email, password_hash } =
            change.clone();
        let update = self.scope.write(move |transaction| {
            Box::pin(async move {
                if !confirm_password(transaction, id, &checked_hash).await? {
                    return Ok(None);
                }
                require_session(transaction, &access_hash).await?;
                transaction.execute(&sql::DELETE_OTHER_SESSIONS, &[id.into(), access_hash.as_str().into()]).await?;
                transaction.execute(&sql::DELETE_KNOWN_CLIENTS, &[id.into()]).await?;
                if let Some(hash) = password_hash {
                    transaction.execute(&sql::SET_CREDENTIALS, &[id.into(), hash.into(), now.into()]).await?;
                    Purpose::Recovery.void_tokens(transaction, id).await?;
                }
                if let Some(email) = email.as_deref() {
                    // The table may have the address in another spelling, so that its unique index finds nothing.
                    let others = [email.into(), id.into()];
                    if transaction.fetch_optional(&sql::GET_OTHER_USER, &others, sql::id).await?.is_some() {
                        return Err(address_is_taken());
                    }
                    transaction.execute(&sql::DELETE_MAILED_TOKENS, &[id.into()]).await?;
                    transaction.execute(&sql::DELETE_VERIFIED_EMAIL, &[id.into()]).await?;
                    clear_counts(transaction, &old).await?;
                }
                transaction.execute(&sql::UPDATE_USER, &[id.into(), email.into(), now.into()]).await?;
                if let Some(tokens) = &tokens {
                    tokens.replace(transaction, &access_hash, now).await?;
                }
                rate_limit::clear(transaction, &CountKey::user(id)).await?;
                let user = get_user(transaction, id).await?.ok_or_else(session_ended)?;
                Ok(Some((user, tokens)))
            })
        });
        Ok(update.await?.map(|(user, tokens)| match tokens {
            Some(tokens) => tokens.into_session(session.id, user),
            None => Session { user, ..session.clone() },
        }))
    }

    /// Checks the password of the account of `session` and changes nothing. Returns the user.
    pub(super) async fn confirm_user(&self, permit: HashPermit, session: &Session, password: &str) -> Result<User> {
        let account = self.confirm_account(&permit, session, password).await?;
        drop(permit);
        let id = account.user.id;
        let clear = self.scope.write(move |transaction| {
            Box::pin(async move { rate_limit::clear(transaction, &CountKey::user(id)).await })
        });
        clear.await?;
        Ok(account.user)
    }

    /// Deletes the account of `session`, after its [`clear_account`](Accounts::clear_account). Returns false if the account is
    /// large again; then the other sessions of the user have ended. Keeps `permit` as [`update_user`](Accounts::update_user) does.
    pub(super) async fn delete_own_user(
        &self,
        permit: HashPermit,
        session: &Session,
        password: &str,
        entries: UserEntries,
    ) -> Result<bool> {
        let (id, access_hash) = (session.user.id, token::hash(&session.access_token));
        for _ in 0..PASSWORD_CHECKS {
            let account = self.confirm_account(&permit, session, password).await?;
            let (access_hash, entries) = (access_hash.clone(), entries.clone());
            let delete = self.scope.write(move |transaction| {
                Box::pin(async move {
                    if !confirm_password(transaction, id, &account.password_hash).await? {
                        return Ok(None);
                    }
                    require_session(transaction, &access_hash).await?;
                    if transaction.is_large_account(id).await? {
                        transaction.execute(&sql::DELETE_OTHER_SESSIONS, &[id.into(), access_hash.into()]).await?;
                        return Ok(Some(false));
                    }
                    delete_row(transaction, id, &entries).await.map(Some)
                })
            });
            if let Some(is_deleted) = delete.await? {
                self.scope.superfluous_objects().notify_one();
                return Ok(is_deleted);
            }
        }
        Err(invalid_credentials())
    }

    /// Returns a page of all users, by id.
    pub(super) async fn list_users(&self, limit: u32, after: Option<Uuid>) -> Result<Vec<User>> {
        self.scope.key_page(&sql::LIST_USERS, limit, after, sql::listed_user).await
    }

    /// Finds the user with an address; `None` for text that is no address.
    pub(super) async fn find_user(&self, email: &str) -> Result<Option<User>> {
        let Ok(email) = email_address::normal(email) else { return Ok(None) };
        self.scope.fetch_optional(&sql::FIND_USER, &[email.into()], sql::user).await
    }

    /// Sets a password and ends every session of the user. `password` has been validated.
    pub(super) async fn set_password(&self, permit: HashPermit, id: Uuid, password: &str) -> Result<()> {
        let hash = permit.hash(password).await?;
        drop(permit);
        let now = self.clock.now();
        let set = self.scope.write(move |transaction| {
            Box::pin(async move { replace_password(transaction, id, &hash, now).await.map(drop) })
        });
        set.await
    }

    /// # Errors
    /// `NotFound` for an unknown user.
    pub(super) async fn require_user(&self, id: Uuid) -> Result<User> {
        self.scope.fetch_one(&sql::GET_USER, &[id.into()], sql::user).await
    }

    pub(super) async fn delete_user(&self, id: Uuid) -> Result<()> {
        for _ in 0..DELETIONS {
            let entries = self.clear_account(id).await?;
            let delete = self.scope.write(move |transaction| {
                Box::pin(async move {
                    // Locks in the order of a concurrent sign-in, so that the two cannot deadlock: the account first, then
                    // its other rows.
                    transaction.execute(&sql::LOCK_ACCOUNT, &[id.into()]).await?;
                    if transaction.is_large_account(id).await? {
                        // The user has written meanwhile.
                        transaction.execute(&sql::DELETE_ALL_SESSIONS, &[id.into()]).await?;
                        return Ok(false);
                    }
                    if delete_row(transaction, id, &entries).await? { Ok(true) } else { Err(Error::not_found()) }
                })
            });
            if delete.await? {
                self.scope.superfluous_objects().notify_one();
                return Ok(());
            }
        }
        Err(account_grows())
    }

    /// Deletes in steps what belongs to a user, until the rest and its entries in the change log are few, and erases it from the
    /// log. Returns the entries that are left.
    pub(super) async fn clear_account(&self, id: Uuid) -> Result<UserEntries> {
        self.scope.clear_large_account(id).await?;
        self.scope.superfluous_objects().notify_one();
        let entries = self.scope.erase_in_steps(id).await?;
        if entries.is_small() {
            return Ok(entries);
        }
        self.scope.clear_whole_account(id).await?;
        self.scope.superfluous_objects().notify_one();
        self.scope.erase_in_steps(id).await
    }

    /// Fetches the account of `session` and checks its password. Failures are counted for the user, not for the address,
    /// so that strangers who fail to sign in do not lock a signed-in user out of the account's settings.
    async fn confirm_account(&self, permit: &HashPermit, session: &Session, password: &str) -> Result<Account> {
        // First, so that a session that has ended fails the same for a right and for a wrong password.
        self.sessions.get_session(&session.access_token).await?;
        let account = self.scope.fetch_optional(&sql::GET_ACCOUNT, &[session.user.id.into()], sql::account).await?;
        let check = self.check_password(permit, &[CountKey::user(session.user.id)], password, account.as_ref()).await?;
        match account {
            Some(account) if check != PasswordCheck::Wrong => Ok(account),
            _ => Err(invalid_credentials()),
        }
    }

    /// Checks a password against an account, if there is one, and counts a failure. Checks and updates the rate limit
    /// while it holds the permit, so that concurrent guesses exceed the limit by no more than the number of permits.
    async fn check_password(
        &self,
        permit: &HashPermit,
        count_keys: &[CountKey],
        password: &str,
        account: Option<&Account>,
    ) -> Result<PasswordCheck> {
        for key in count_keys {
            self.rate_limit.check(key).await?;
        }
        let check = permit.check(password, account.map(|account| account.password_hash.clone())).await?;
        if check == PasswordCheck::Wrong && !count_keys.is_empty() {
            self.rate_limit.count_failure(count_keys).await?;
        }
        Ok(check)
    }
}

impl AccountChange {
    /// Whether the change replaces the password, and so the tokens of the session.
    pub(super) fn replaces_tokens(&self) -> bool {
        self.password_hash.is_some()
    }
}

/// The error for an account that its user fills while it is deleted.
pub(super) fn account_grows() -> Error {
    Error::unavailable("the user writes to the account that is being deleted; call again")
}

/// The error for an address that another user has.
fn address_is_taken() -> Error {
    Error::already_exists("users.email")
}

/// Deletes a user inside a transaction, with the user's counts of failures and entries in the change log. Returns false for
/// an unknown user.
async fn delete_row(transaction: &mut Transaction<'_>, id: Uuid, entries: &UserEntries) -> Result<bool> {
    let Some(user) = get_user(transaction, id).await? else { return Ok(false) };
    clear_counts(transaction, &user).await?;
    transaction.delete_files_in_nobodys_folder(id).await?;
    let count = transaction.execute(&sql::DELETE_USER, &[id.into()]).await?;
    // After the deletion, which adds entries to the log.
    transaction.erase_from_log(id, entries).await?;
    Ok(count > 0)
}

/// Reads a user inside a transaction.
pub(super) async fn get_user(transaction: &mut Transaction<'_>, id: Uuid) -> Result<Option<User>> {
    transaction.fetch_optional(&sql::GET_USER, &[id.into()], sql::user).await
}

/// Replaces the password of a user inside a transaction, ends every session of the user, voids recovery tokens and resets
/// the rate limits. Returns the user.
///
/// # Errors
/// `NotFound` for an unknown user.
pub(super) async fn replace_password(
    transaction: &mut Transaction<'_>,
    id: Uuid,
    password_hash: &str,
    now: Timestamp,
) -> Result<User> {
    // Locks in the order of a concurrent sign-in: the account first, then its other rows.
    transaction.execute(&sql::LOCK_ACCOUNT, &[id.into()]).await?;
    let user = get_user(transaction, id).await?.ok_or_else(Error::not_found)?;
    transaction.execute(&sql::SET_CREDENTIALS, &[id.into(), password_hash.into(), now.into()]).await?;
    transaction.execute(&sql::DELETE_ALL_SESSIONS, &[id.into()]).await?;
    Purpose::Recovery.void_tokens(transaction, id).await?;
    // An attacker with the old password may have a known client.
    transaction.execute(&sql::DELETE_KNOWN_CLIENTS, &[id.into()]).await?;
    clear_counts(transaction, &user).await?;
    Ok(user)
}

/// Resets the counts of failures of a user and of the user's address.
async fn clear_counts(transaction: &mut Transaction<'_>, user: &User) -> Result<()> {
    rate_limit::clear(transaction, &CountKey::user(user.id)).await?;
    // Other programs may have stored the address in another spelling.
    match email_address::normal(&user.email) {
        Ok(email) => rate_limit::clear(transaction, &CountKey::address(&email)).await,
        Err(_) => Ok(()),
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
