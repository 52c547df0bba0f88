//! Recovery of accounts and verification of addresses, by tokens that the host mails (DESIGN 8).
//!
//! Invariant: a token works once, for its purpose, until it expires, and only while its user has the address that it was
//! made for. The database stores hashes of tokens only.

use uuid::Uuid;

use super::{
    Auth,
    accounts::{self, Accounts},
    mailed_token::Purpose,
    password::{self, HashPermit},
    session_store::TokenPair,
    statements as sql, token,
};
use crate::{
    clock::later,
    error::{Error, Operation, Result},
    model::{Session, User},
};

impl Auth {
    /// Makes a token with which the user with this address can [`recover`](Auth::recover) the account; `None` for an
    /// unknown address. Only the service may do this. The token works once, within an hour, while the user has this
    /// address and password.
    ///
    /// The program mails the token to the user's stored address, never to the address that was asked for: two spellings of
    /// one address may be two mailboxes (`k` and the Kelvin sign are one letter in lower case). The program gives the same answer
    /// for a known and for an unknown address, and limits how many mails it sends to one address.
    ///
    /// # Errors
    /// `Unauthorized` for an anonymous caller, `Forbidden` for a user.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// # fn mail(address: &str, text: String) {}
    /// let asked = "Ann@town.example";
    /// let service = client.as_service();
    /// if let Some(user) = service.auth().find_user(asked)?
    ///     && let Some(token) = service.auth().create_recovery_token(&user.email)?
    /// {
    ///     mail(&user.email, format!("https://town.example/recover#{token}"));
    /// }
    /// println!("If {asked} has an account, a mail is on its way.");
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn create_recovery_token(&self, email: &str) -> Result<Option<String>> {
        self.run_as_service(Operation::CreateRecoveryToken, self.accounts.create_recovery_token(email)).await
    }

    /// Uses a token of [`create_recovery_token`](Auth::create_recovery_token): sets the password, ends every session of
    /// the user, and signs in as [`sign_in`](Auth::sign_in) does.
    ///
    /// # Errors
    /// `Unauthorized` for a token that is unknown, used, expired or void; `InvalidInput` for a password that is not 8 to
    /// 1,024 bytes long, which does not use the token; `RateLimited` when too many password checks are waiting.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// # let token = "tsrecover_0123";
    /// let session = client.auth().recover(token, "a better passphrase")?;
    /// println!("Signed in as {}", session.user.email);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn recover(&self, recovery_token: &str, new_password: &str) -> Result<Session> {
        let prepare = async {
            password::check_length(new_password)?;
            self.state.detached.wait(|()| true).await;
            self.accounts.check_recovery_token(recovery_token).await?;
            Ok(((), None))
        };
        let (auth, token, password) = (self.clone(), recovery_token.to_owned(), new_password.to_owned());
        let work = |permit, ()| async move {
            let session = auth.accounts.recover(permit, &token, &password).await?;
            auth.state.sign_in(&session).await?;
            Ok(session)
        };
        self.hash(Operation::Recover, prepare, work).await
    }

    /// Makes a token with which a user proves that they receive mail at the present address; the program mails it. Only the
    /// service may do this. The token works once, within a day, while the user has this address.
    ///
    /// # Errors
    /// `NotFound` for an unknown user; `Unauthorized` for an anonymous caller, `Forbidden` for a user.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// # fn mail(address: &str, text: String) {}
    /// let user = client.auth().sign_up("ann@town.example", "correct horse battery")?;
    /// let token = client.as_service().auth().create_verification_token(user.id)?;
    /// mail(&user.email, format!("https://town.example/verify#{token}"));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn create_verification_token(&self, user_id: Uuid) -> Result<String> {
        self.run_as_service(Operation::CreateVerificationToken, self.accounts.create_verification_token(user_id)).await
    }

    /// Uses a token of [`create_verification_token`](Auth::create_verification_token): sets the user's
    /// [`email_verified_at`](User::email_verified_at). Any caller may do this; it signs nobody in. Sends
    /// `USER_UPDATED` to listeners if the user is signed in on this handle.
    ///
    /// # Errors
    /// `Unauthorized` for a token that is unknown, used, expired or void.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// # let token = "tsverify_0123";
    /// let user = client.auth().verify_email(token)?;
    /// assert!(user.email_verified_at.is_some());
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn verify_email(&self, verification_token: &str) -> Result<User> {
        let (auth, token) = (self.clone(), verification_token.to_owned());
        let work = async move {
            let user = auth.accounts.verify_email(&token).await?;
            auth.state.replace_own_user(&user).await;
            Ok(user)
        };
        self.run_to_completion(Operation::VerifyEmail, work).await
    }
}

impl Accounts {
    /// Makes a token for the user with an address; `None` for an unknown address.
    pub(super) async fn create_recovery_token(&self, email: &str) -> Result<Option<String>> {
        match self.find_user(email).await? {
            Some(user) => self.create_token(Purpose::Recovery, user).await.map(Some),
            None => Ok(None),
        }
    }

    /// Makes a token for the present address of a user.
    ///
    /// # Errors
    /// `NotFound` for an unknown user.
    pub(super) async fn create_verification_token(&self, user_id: Uuid) -> Result<String> {
        let user = self.require_user(user_id).await?;
        self.create_token(Purpose::Verification, user).await
    }

    async fn create_token(&self, purpose: Purpose, user: User) -> Result<String> {
        let token = token::new(purpose.token_kind())?;
        let (token_hash, now) = (token::hash(&token), self.clock.now());
        let insert = self.scope.write(move |transaction| {
            Box::pin(async move {
                transaction.execute(&sql::DELETE_EXPIRED_MAILED_TOKENS, &[now.into()]).await?;
                let values = [
                    token_hash.into(),
                    purpose.as_str().into(),
                    user.id.into(),
                    user.email.into(),
                    later(now, purpose.lifetime()).into(),
                ];
                transaction.execute(&sql::INSERT_MAILED_TOKEN, &values).await.map(drop)
            })
        });
        insert.await?;
        Ok(token)
    }

    /// # Errors
    /// `Unauthorized` for a recovery token that is not valid. [`Accounts::recover`] checks this again; this check comes
    /// before the password is hashed, so that guesses cost little.
    pub(super) async fn check_recovery_token(&self, token: &str) -> Result<()> {
        let (purpose, token_hash) = (Purpose::Recovery, token::hash(token));
        let values = [token_hash.as_str().into(), purpose.as_str().into(), self.clock.now().into()];
        let user = self.scope.fetch_optional(&sql::GET_MAILED_TOKEN, &values, sql::id).await?;
        user.map(drop).ok_or_else(|| purpose.not_valid())
    }

    /// Uses a recovery token: sets the password, ends every session of the user and creates a new one. `password` has
    /// been validated.
    pub(super) async fn recover(&self, permit: HashPermit, token: &str, password: &str) -> Result<Session> {
        let hash = permit.hash(password).await?;
        drop(permit);
        let (token_hash, now) = (token::hash(token), self.clock.now());
        let tokens = TokenPair::new(now)?;
        let recover = self.scope.write(move |transaction| {
            Box::pin(async move {
                let id = Purpose::Recovery.use_token(transaction, &token_hash, now).await?;
                let user = accounts::replace_password(transaction, id, &hash, now).await?;
                let session_id = tokens.insert_session(transaction, id, now).await?;
                Ok(tokens.into_session(session_id, user))
            })
        });
        recover.await
    }

    /// Uses a verification token: records that its user receives mail at the address.
    pub(super) async fn verify_email(&self, token: &str) -> Result<User> {
        let (token_hash, now) = (token::hash(token), self.clock.now());
        let verify = self.scope.write(move |transaction| {
            Box::pin(async move {
                let id = Purpose::Verification.use_token(transaction, &token_hash, now).await?;
                transaction.execute(&sql::SET_VERIFIED_EMAIL, &[id.into(), now.into()]).await?;
                accounts::get_user(transaction, id).await?.ok_or_else(Error::not_found)
            })
        });
        verify.await
    }
}
