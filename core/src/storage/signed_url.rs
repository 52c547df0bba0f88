//! Signed URLs: they act for their signer without a session, until they end.
//!
//! Invariant: the signer's right is judged when a URL is used, by the same policies as a call of the signer. So a URL dies
//! with the right and with the user, not with the session that signed it. A new key ends every URL.

use std::time::Duration;

use jiff::Timestamp;
use ring::rand::{SecureRandom as _, SystemRandom};
use uuid::Uuid;

use super::{
    Storage,
    buckets::Target as FileTarget,
    put::{Refusal as WriteRefusal, check_values},
    read::missing,
};
use crate::{
    database::{CurrentPrincipal, Principal, Statement},
    error::{Error, ErrorKind, Result},
    http_file::{Signer, Target, UrlKey, UrlToken},
    http_refusal::Refusal,
    model::UrlMethod,
    policy::Caller,
};

/// The longest time for which a URL may be signed.
const MAX_TIME: Duration = Duration::from_secs(7 * 24 * 3_600);

static GET_KEY: Statement = Statement::new("SELECT url_key FROM townsquare.database");

static SET_KEY: Statement = Statement::new("UPDATE townsquare.database SET url_key = $1 RETURNING url_key");

static USER_EXISTS: Statement = Statement::new("SELECT users.id FROM users WHERE users.id = $1");

/// Whether the caller may read a file.
static MAY_READ: Statement = Statement::new(
    "SELECT TRUE FROM townsquare.files AS files WHERE files.bucket = $1 AND files.path = $2 AND {files.select}",
);

/// Whether the caller may write a file: an existing one by the policy of its row, a new one by that of the row that it
/// would get.
static MAY_WRITE: Statement = Statement::new(
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM townsquare.files AS files WHERE files.bucket = $1 AND files.path = $2)
     THEN EXISTS (SELECT 1 FROM townsquare.files AS files
         WHERE files.bucket = $1 AND files.path = $2 AND {files.update})
     ELSE EXISTS (SELECT 1 FROM (SELECT $3 AS access, $4 AS space_id, $5 AS first_segment, $6 AS owner_id) AS files
         WHERE {files.insert}) END",
);

impl Storage {
    /// Refuses a file that does not exist or that the caller may not see.
    async fn check_may_read(&self, target: &FileTarget) -> Result<()> {
        let values = [target.bucket.as_str().into(), target.path.as_str().into()];
        self.scope.fetch_optional(&MAY_READ, &values, |_| Ok(())).await?.ok_or_else(missing)
    }

    /// Refuses a path that the caller may not write.
    async fn check_may_write(&self, target: &FileTarget) -> Result<()> {
        let caller = self.scope.caller();
        let [access, space_id, first_segment, owner_id] = check_values(target, caller.id());
        let (bucket, path) = (target.bucket.as_str().into(), target.path.as_str().into());
        let values = [bucket, path, access, space_id, first_segment, owner_id];
        let may_write = self.scope.fetch_one(&MAY_WRITE, &values, |row| row.get::<bool>(0)).await?;
        if may_write { Ok(()) } else { Err(WriteRefusal::Denied.into_error(caller)) }
    }

    pub(super) async fn sign_url(
        &self,
        bucket: &str,
        path: &str,
        method: UrlMethod,
        expires_in: Duration,
    ) -> Result<String> {
        if expires_in.is_zero() || expires_in > MAX_TIME {
            return Err(Error::file(400, "a signed URL is for more than 0 seconds and at most 7 days"));
        }
        let target = self.core.buckets.target(bucket, path)?;
        match method {
            UrlMethod::Get => self.check_may_read(&target).await?,
            UrlMethod::Put => self.check_may_write(&target).await?,
        }
        let signer = match self.scope.caller() {
            Caller::Anonymous => Signer::Anonymous,
            Caller::User(id) => Signer::User(id),
            Caller::Service => Signer::Service,
        };
        let token = UrlToken { method, signer, expires_at: self.end(expires_in)? };
        Ok(self.url_key().await?.sign(bucket, path, token))
    }

    /// Replaces the key of signed URLs.
    pub(super) async fn replace_url_key(&self) -> Result<()> {
        match self.scope.caller() {
            Caller::Service => {}
            Caller::Anonymous => return Err(Error::file(401, "only the service may replace the key of signed URLs")),
            Caller::User(_) => return Err(Error::file(403, "only the service may replace the key of signed URLs")),
        }
        let mut key = [0; 32];
        let filled = SystemRandom::new().fill(&mut key);
        filled.map_err(|_| Error::new(ErrorKind::Internal, "the operating system has no random bytes"))?;
        let replaced = self.scope.execute(&SET_KEY, vec![hex::encode(key).into()], |row| row.get::<String>(0)).await?;
        replaced.map(drop).ok_or_else(Error::not_found)
    }

    /// The principal that a signed URL acts for.
    pub(super) async fn signer(&self, target: &Target, method: UrlMethod) -> Result<CurrentPrincipal, Refusal> {
        let token = self.url_key().await?.verify(target, self.core.clock.now());
        let Some(token) = token.filter(|token| token.method == method) else {
            return Err(Refusal::invalid_token());
        };
        let principal = match token.signer {
            Signer::Anonymous => Principal::Anonymous,
            Signer::Service => Principal::Service,
            Signer::User(id) => {
                let user =
                    self.core.service.fetch_optional(&USER_EXISTS, &[id.into()], |row| row.get::<Uuid>(0)).await?;
                match user {
                    Some(id) => Principal::Vouched(id),
                    None => return Err(Refusal::invalid_token()),
                }
            }
        };
        Ok(self.scope.handle_of(principal))
    }

    async fn url_key(&self) -> Result<UrlKey> {
        let text = self.core.service.fetch_one(&GET_KEY, &[], |row| row.get::<String>(0)).await?;
        let key = UrlKey::from_hex(&text);
        key.ok_or_else(|| Error::new(ErrorKind::Internal, "the database's key of signed URLs is malformed"))
    }

    /// The end of a URL that is signed now: whole seconds, and not before `expires_in` is over.
    fn end(&self, expires_in: Duration) -> Result<Timestamp> {
        let end = self.core.clock.now().checked_add(expires_in).ok();
        let round_up = |end: Timestamp| end.as_second() + i64::from(end.subsec_nanosecond() > 0);
        let end = end.and_then(|end| Timestamp::from_second(round_up(end)).ok());
        end.ok_or_else(|| Error::file(400, "the end of the signed URL is out of range"))
    }
}
