//! Tokens that the host mails to a user: to recover an account and to verify an address (DESIGN 8).
//!
//! Invariant: a token works once, for its purpose, until it expires, and only while its user has the address that it was
//! made for. The database stores hashes of tokens only.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::{
    accounts::{self, Accounts},
    password::HashPermit,
    session_store::TokenPair,
    statements as sql,
    token::{self, TokenKind},
};
use crate::{
    clock::later,
    database::Transaction,
    error::{Error, ErrorKind, Result},
    model::{Session, User},
};

/// What a mailed token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Recovery,
    Verification,
}

impl Purpose {
    fn as_str(self) -> &'static str {
        match self {
            Purpose::Recovery => "recovery",
            Purpose::Verification => "verification",
        }
    }

    fn token_kind(self) -> TokenKind {
        match self {
            Purpose::Recovery => TokenKind::Recovery,
            Purpose::Verification => TokenKind::Verification,
        }
    }

    /// How long a token is valid: a recovery token opens the account, so it is valid for a short time only.
    fn lifetime(self) -> Duration {
        match self {
            Purpose::Recovery => Duration::from_secs(3_600),
            Purpose::Verification => Duration::from_secs(86_400),
        }
    }

    /// Voids every token of this purpose of a user.
    pub(super) async fn void_tokens(self, transaction: &mut Transaction<'_>, user_id: Uuid) -> Result<()> {
        let values = [user_id.into(), self.as_str().into()];
        transaction.execute(&sql::DELETE_MAILED_TOKENS_OF_PURPOSE, &values).await.map(drop)
    }

    /// Finds the user of a valid token inside a transaction.
    ///
    /// # Errors
    /// `Unauthorized` for a token that is not valid.
    async fn user_of_token(self, transaction: &mut Transaction<'_>, token_hash: &str, now: Timestamp) -> Result<Uuid> {
        let values = [token_hash.into(), self.as_str().into(), now.into()];
        let user = transaction.fetch_optional(&sql::GET_MAILED_TOKEN, &values, sql::id).await?;
        user.ok_or_else(|| self.not_valid())
    }

    /// The error for a token that is unknown, used, expired, void or of another purpose.
    fn not_valid(self) -> Error {
        Error::new(ErrorKind::Unauthorized, format!("The {} token is not valid", self.as_str()))
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
        let (token_hash, now) = (token::hash(&token), self.clock().now());
        let insert = self.scope().write(move |transaction| {
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
        let values = [token_hash.as_str().into(), purpose.as_str().into(), self.clock().now().into()];
        let user = self.scope().fetch_optional(&sql::GET_MAILED_TOKEN, &values, sql::id).await?;
        user.map(drop).ok_or_else(|| purpose.not_valid())
    }

    /// Uses a recovery token: sets the password, ends every session of the user and creates a new one. `password` has
    /// been validated.
    pub(super) async fn recover(&self, permit: HashPermit, token: &str, password: &str) -> Result<Session> {
        let hash = permit.hash(password).await?;
        drop(permit);
        let (token_hash, now) = (token::hash(token), self.clock().now());
        let tokens = TokenPair::new(now)?;
        let recover = self.scope().write(move |transaction| {
            Box::pin(async move {
                let id = Purpose::Recovery.user_of_token(transaction, &token_hash, now).await?;
                // Locks the account first. A concurrent use of the token, or a change of address, has then committed, so
                // the token is looked up again.
                transaction.execute(&sql::LOCK_ACCOUNT, &[id.into()]).await?;
                Purpose::Recovery.user_of_token(transaction, &token_hash, now).await?;
                if transaction.execute(&sql::DELETE_MAILED_TOKEN, &[token_hash.into()]).await? == 0 {
                    return Err(Purpose::Recovery.not_valid());
                }
                let user = accounts::replace_password(transaction, id, &hash, now).await?;
                tokens.insert_session(transaction, id, now).await?;
                Ok(tokens.into_session(user))
            })
        });
        recover.await
    }

    /// Uses a verification token: records that its user receives mail at the address.
    pub(super) async fn verify_email(&self, token: &str) -> Result<User> {
        let (token_hash, now) = (token::hash(token), self.clock().now());
        let verify = self.scope().write(move |transaction| {
            Box::pin(async move {
                let id = Purpose::Verification.user_of_token(transaction, &token_hash, now).await?;
                transaction.execute(&sql::LOCK_ACCOUNT, &[id.into()]).await?;
                Purpose::Verification.user_of_token(transaction, &token_hash, now).await?;
                if transaction.execute(&sql::DELETE_MAILED_TOKEN, &[token_hash.into()]).await? == 0 {
                    return Err(Purpose::Verification.not_valid());
                }
                transaction.execute(&sql::SET_VERIFIED_EMAIL, &[id.into(), now.into()]).await?;
                accounts::get_user(transaction, id).await?.ok_or_else(Error::not_found)
            })
        });
        verify.await
    }
}
