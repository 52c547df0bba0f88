//! The two purposes of tokens that the host mails to a user: to recover an account and to verify an address.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::{statements as sql, token::TokenKind};
use crate::{
    database::Transaction,
    error::{Error, ErrorKind, Result},
};

/// What a mailed token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Recovery,
    Verification,
}

impl Purpose {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Purpose::Recovery => "recovery",
            Purpose::Verification => "verification",
        }
    }

    pub(super) fn token_kind(self) -> TokenKind {
        match self {
            Purpose::Recovery => TokenKind::Recovery,
            Purpose::Verification => TokenKind::Verification,
        }
    }

    /// How long a token is valid: a recovery token opens the account, so it is valid for a short time only.
    pub(super) fn lifetime(self) -> Duration {
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

    /// Uses a token inside a transaction, and locks the account of its user. Returns the user's id.
    ///
    /// # Errors
    /// `Unauthorized` for a token that is not valid.
    pub(super) async fn use_token(
        self,
        transaction: &mut Transaction<'_>,
        token_hash: &str,
        now: Timestamp,
    ) -> Result<Uuid> {
        let id = self.user_of_token(transaction, token_hash, now).await?;
        transaction.execute(&sql::LOCK_ACCOUNT, &[id.into()]).await?;
        // Again: a concurrent use of the token, or a change of address, has committed before the lock was acquired.
        self.user_of_token(transaction, token_hash, now).await?;
        match transaction.execute(&sql::DELETE_MAILED_TOKEN, &[token_hash.into()]).await? {
            0 => Err(self.not_valid()),
            _ => Ok(id),
        }
    }

    async fn user_of_token(self, transaction: &mut Transaction<'_>, token_hash: &str, now: Timestamp) -> Result<Uuid> {
        let values = [token_hash.into(), self.as_str().into(), now.into()];
        let user = transaction.fetch_optional(&sql::GET_MAILED_TOKEN, &values, sql::id).await?;
        user.ok_or_else(|| self.not_valid())
    }

    /// The error for a token that is unknown, used, expired, void or of another purpose.
    pub(super) fn not_valid(self) -> Error {
        Error::new(ErrorKind::Unauthorized, format!("The {} token is not valid", self.as_str()))
    }
}
