//! Signed URLs: they act for their signer without a session, until they end.
//!
//! Invariant: the signer's right is checked when a URL is used, by the same policies as a call of the signer. So a URL dies
//! with the right and with the user, not with the session that signed it. A new generation of the signer ends the signer's
//! URLs, and uploads by them that have not ended; a new key ends every URL.

use std::time::Duration;

use jiff::Timestamp;
use ring::rand::{SecureRandom as _, SystemRandom};

use super::{
    Storage,
    buckets::FileTarget,
    checks::check_content_type,
    refusal::denied,
    statements as sql,
    url_token::{MAX_LIFE, PutLimits, RequestedFile, Signer, UrlKey, UrlToken},
};
use crate::{
    config::Secret,
    database::{self, Principal, Row, Statement, session_ended},
    error::{Error, ErrorKind, Result},
    model::{UrlMethod, UrlOptions},
    policy::Caller,
};

/// The key and the generation of a user, which is NULL for a user without a password.
static GET_KEY: Statement = Statement::new(
    "SELECT database.url_key, database.incarnation,
        (SELECT credentials.url_generation FROM townsquare.credentials AS credentials WHERE credentials.user_id = $1)
     FROM townsquare.database AS database",
);

static SET_KEY: Statement = Statement::new("UPDATE townsquare.database SET url_key = $1 RETURNING url_key");

impl Storage {
    /// Refuses a path that the caller may not write, which needs what an upload needs: the right to the row that the file would
    /// get, and to the row that it replaces.
    async fn check_may_write(&self, target: &FileTarget) -> Result<()> {
        let caller = self.scope.caller();
        self.check_write(target, caller.id()).await?;
        let values = [target.bucket.as_str().into(), target.path.as_str().into()];
        match self.scope.fetch_optional(&sql::EXISTING, &values, |row| row.get_optional::<bool>(1)).await? {
            Some(may_update) if may_update != Some(true) => Err(denied(caller)),
            _ => Ok(()),
        }
    }

    pub(super) async fn sign_url(
        &self,
        bucket: &str,
        path: &str,
        method: UrlMethod,
        options: UrlOptions,
    ) -> Result<String> {
        let UrlOptions { expires_in, max_size, content_type } = options;
        if expires_in.is_zero() || expires_in > MAX_LIFE {
            return Err(Error::file(400, "a signed URL is for more than 0 seconds and at most 7 days"));
        }
        let limits = PutLimits { max_size, content_type };
        if method != UrlMethod::Put && limits != PutLimits::default() {
            return Err(Error::file(400, "max_size and content_type are for PUT"));
        }
        check_content_type(limits.content_type.as_deref())?;
        match method {
            UrlMethod::Get => drop(self.find_row(&self.core.buckets.target(bucket, path)?).await?),
            UrlMethod::Put => self.check_may_write(&self.core.buckets.new_target(bucket, path)?).await?,
        }
        let signer = match self.scope.caller() {
            Caller::Anonymous => Signer::Anonymous,
            Caller::User(id) => Signer::User(id),
            Caller::Service => Signer::Service,
        };
        let token = UrlToken { method, signer, expires_at: self.end(expires_in)?, limits };
        let (key, _) = self.url_key(signer).await?.ok_or_else(session_ended)?;
        Ok(key.sign(bucket, path, &token))
    }

    /// Replaces the key of signed URLs.
    pub(super) async fn replace_url_key(&self) -> Result<()> {
        self.require_service()?;
        if self.core.options.url_signing_key.is_some() {
            return Err(Error::file(400, "the key of signed URLs is the option url_signing_key"));
        }
        let mut key = [0; 32];
        let filled = SystemRandom::new().fill(&mut key);
        filled.map_err(|_| Error::new(ErrorKind::Internal, "the operating system has no random bytes"))?;
        let replaced = self.scope.execute(&SET_KEY, vec![hex::encode(key).into()], |row| row.get::<String>(0)).await?;
        replaced.map(drop).ok_or_else(Error::not_found)
    }

    /// The storage of the signer of a URL, and what the URL says about the file of a PUT. `None` if the signature is not
    /// valid, or is for another method.
    pub(crate) async fn of_signer(
        &self,
        file: &RequestedFile,
        method: UrlMethod,
    ) -> Result<Option<(Storage, PutLimits)>> {
        let Some(claimed) = file.claimed_signer() else { return Ok(None) };
        let Some((key, generation)) = self.url_key(claimed).await? else { return Ok(None) };
        let token = key.verify(file, self.core.clock.now()).filter(|token| token.method == method);
        Ok(token.map(|token| {
            let principal = match token.signer {
                Signer::Anonymous => Principal::Anonymous,
                Signer::Service => Principal::Service,
                Signer::User(user_id) => Principal::Vouched(database::Signer { user_id, generation }),
            };
            (self.for_principal(self.scope.handle_of(principal)), token.limits)
        }))
    }

    /// The key of a signer's URLs and their generation; `None` for a user who is gone or has no password.
    async fn url_key(&self, signer: Signer) -> Result<Option<(UrlKey, i64)>> {
        let read = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get::<String>(1)?, row.get_optional::<i64>(2)?));
        let user_id = signer.user_id();
        let (stored, incarnation, generation) = self.core.service.fetch_one(&GET_KEY, &[user_id.into()], read).await?;
        let Some(generation) = generation.or(user_id.is_none().then_some(0)) else { return Ok(None) };
        let secret = self.core.options.url_signing_key.as_ref().map_or(stored.as_str(), Secret::reveal);
        let key = UrlKey::new(secret, &incarnation, generation);
        let malformed = || Error::new(ErrorKind::Internal, "the database's key of signed URLs is malformed");
        Ok(Some((key.ok_or_else(malformed)?, generation)))
    }

    /// The end of a URL that is signed now: whole seconds, and not before `expires_in` is over.
    fn end(&self, expires_in: Duration) -> Result<Timestamp> {
        let end = self.core.clock.now().checked_add(expires_in).ok();
        let round_up = |end: Timestamp| end.as_second() + i64::from(end.subsec_nanosecond() > 0);
        let end = end.and_then(|end| Timestamp::from_second(round_up(end)).ok());
        end.ok_or_else(|| Error::file(400, "the end of the signed URL is out of range"))
    }
}
