//! Identity keys of users: linking, unlinking and listing them (DESIGN 4).
//!
//! Invariant: a key belongs to one user. The user has proved by a claim that they hold the key.

use serde_json::Value as Json;
use uuid::Uuid;

use super::{Auth, accounts::Accounts, identity_claim, session_store::require_session, statements as sql};
use crate::{
    database::{Credential, Transaction, call, session_ended},
    error::{Error, Operation, Result},
};

/// The largest number of identity keys of a user.
const MAX_KEYS: i64 = 100;

impl Auth {
    /// Links an identity key to the signed-in user. `claim` is made by [`identity_claim`]. Succeeds when the user has
    /// already linked the key.
    ///
    /// # Errors
    /// `Unauthorized` when no user is signed in, and for a claim with a wrong signature, for another user or audience, older
    /// than five minutes or more than a minute in the future; `AlreadyExists` for a key that another user has linked; `InvalidInput`
    /// for a malformed claim; `QuotaExceeded` (409) for a user who has linked 100 other keys.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use townsquare::{Timestamp, auth::identity_claim};
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// # let private_key = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    ///
    /// let session = client.auth().sign_in("ann@town.example", "correct horse battery")?;
    /// let audience = client.auth().identity_audience()?;
    /// let claim = identity_claim(session.user.id, private_key, &audience, Timestamp::now())?;
    /// client.auth().link_identity(&claim)?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn link_identity(&self, claim: &Json) -> Result<()> {
        let work = self.state.with_credential(|credential| async move {
            let audience = self.accounts.identity_audience().await?;
            let now = self.accounts.clock.now();
            let public_key = identity_claim::verify(claim, credential.user_id, &audience, now)?;
            self.accounts.link_identity(credential, public_key).await
        });
        call(self.principal(), Operation::LinkIdentity, work).await
    }

    /// Removes an identity key, in hex, from the signed-in user. Its rights end at once, but for uploads that have begun;
    /// another user may link it.
    ///
    /// # Errors
    /// `Unauthorized` when no user is signed in or the session has ended; `NotFound` for a key that the user has not
    /// linked.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// for public_key in client.auth().identities()? {
    ///     client.auth().unlink_identity(&public_key)?;
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn unlink_identity(&self, public_key: &str) -> Result<()> {
        // No user has linked a key with a NUL, and PostgreSQL refuses it as a parameter.
        let public_key = if public_key.contains('\0') { "" } else { public_key };
        let work =
            self.state.with_credential(|credential| self.accounts.unlink_identity(credential, public_key.to_owned()));
        call(self.principal(), Operation::UnlinkIdentity, work).await
    }

    /// Returns the identity keys of the signed-in user, in hex, in the order in which they were linked.
    ///
    /// # Errors
    /// `Unauthorized` when no user is signed in or the session has ended.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// println!("{} keys", client.auth().identities()?.len());
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn identities(&self) -> Result<Vec<String>> {
        let work = self.state.with_credential(|credential| async move { self.accounts.identities(&credential).await });
        call(self.principal(), Operation::Identities, work).await
    }

    /// Returns the identity keys of a user, in hex, in the order in which they were linked; none for a user that does not exist.
    /// Only the service may do this.
    ///
    /// # Errors
    /// `Unauthorized` for an anonymous caller, `Forbidden` for a user.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// let service = client.as_service();
    /// let ann = service.auth().sign_up("ann@town.example", "correct horse")?;
    /// assert!(service.auth().identities_of(ann.id)?.is_empty());
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn identities_of(&self, user_id: Uuid) -> Result<Vec<String>> {
        self.run_as_service(Operation::Identities, self.accounts.identities_of(user_id)).await
    }

    /// Returns the audience that identity claims must be for: the option
    /// [`identity_audience`](crate::Config::identity_audience), by default the incarnation id of the database. A program
    /// passes it to the holder of the key. A restored backup has another incarnation id.
    ///
    /// # Errors
    /// Only errors of the database.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use townsquare::{Config, blocking::Client};
    /// let client = Client::open(Config::new().data_dir("town").identity_audience("town.example"))?;
    /// assert_eq!(client.auth().identity_audience()?, "town.example");
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn identity_audience(&self) -> Result<String> {
        call(self.principal(), Operation::IdentityAudience, self.accounts.identity_audience()).await
    }
}

impl Accounts {
    /// Links the identity key `public_key` to the user of `credential`.
    pub(super) async fn link_identity(&self, credential: Credential, public_key: String) -> Result<()> {
        let Credential { user_id, access_hash, .. } = credential;
        let now = self.clock.now();
        let link = self.scope.write_idempotent(move |transaction| {
            Box::pin(async move {
                // Two transactions of the user would count without the keys of each other. First the account, as everywhere.
                transaction.execute(&sql::LOCK_ACCOUNT, &[user_id.into()]).await?;
                require_session(transaction, &access_hash).await?;
                let key = [public_key.as_str().into()];
                let values = [public_key.as_str().into(), user_id.into(), now.into()];
                let is_new = transaction.execute(&sql::LINK_IDENTITY, &values).await? > 0;
                let holder = transaction.fetch_optional(&sql::GET_IDENTITY, &key, sql::id).await?;
                if holder != Some(user_id) {
                    return Err(key_is_taken());
                }
                if is_new { check_count(transaction, user_id).await } else { Ok(()) }
            })
        });
        link.await
    }

    /// Removes the identity key `public_key` from the user of `credential`.
    pub(super) async fn unlink_identity(&self, credential: Credential, public_key: String) -> Result<()> {
        let Credential { user_id, access_hash, .. } = credential;
        let unlink = self.scope.write(move |transaction| {
            Box::pin(async move {
                require_session(transaction, &access_hash).await?;
                let values = [public_key.as_str().into(), user_id.into()];
                match transaction.execute(&sql::UNLINK_IDENTITY, &values).await? {
                    0 => Err(Error::not_found()),
                    _ => Ok(()),
                }
            })
        });
        unlink.await
    }

    /// The identity keys of the user of `credential`, in the order in which they were linked.
    pub(super) async fn identities(&self, credential: &Credential) -> Result<Vec<String>> {
        let values = [credential.access_hash.as_str().into()];
        let rows = self.scope.fetch(&sql::GET_IDENTITIES, &values, sql::optional_text).await?;
        if rows.is_empty() {
            return Err(session_ended());
        }
        Ok(rows.into_iter().flatten().collect())
    }

    /// The identity keys of a user, in the order in which they were linked.
    pub(super) async fn identities_of(&self, user_id: Uuid) -> Result<Vec<String>> {
        self.scope.fetch(&sql::GET_IDENTITIES_OF, &[user_id.into()], sql::text).await
    }

    /// The audience that identity claims must be for: the option, or the incarnation id of the database.
    pub(super) async fn identity_audience(&self) -> Result<String> {
        match self.audience_option.as_deref() {
            Some(audience) => Ok(audience.to_owned()),
            None => self.scope.fetch_one(&sql::GET_INCARNATION, &[], sql::text).await,
        }
    }
}

/// Checks the number of identity keys of a user, in the transaction that linked one.
async fn check_count(transaction: &mut Transaction<'_>, user_id: Uuid) -> Result<()> {
    let values = [user_id.into(), (MAX_KEYS + 1).into()];
    let count = transaction.fetch_optional(&sql::COUNT_IDENTITIES, &values, |row| row.get::<i64>(0)).await?;
    if count.is_some_and(|count| count > MAX_KEYS) {
        let reason = format!("the user would have more than {MAX_KEYS} identity keys");
        return Err(Error::over_quota(409, reason));
    }
    Ok(())
}

/// The error for an identity key that another user has linked.
fn key_is_taken() -> Error {
    Error::already_exists("identities.public_key")
}
