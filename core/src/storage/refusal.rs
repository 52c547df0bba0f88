//! Why a write or a delete is refused: the policy, the version, or the name. Each reason has its error.

use uuid::Uuid;

use super::{Storage, buckets::FileTarget, rows::NewFile, statements as sql};
use crate::{
    database::{Row, Transaction, Value},
    error::{Error, Result},
    objects::ObjectKey,
    policy::Caller,
};

impl Storage {
    /// Refuses a write that the policy refuses, before its bytes are staged.
    pub(super) async fn check_write(&self, target: &FileTarget, owner_id: Option<Uuid>) -> Result<()> {
        let caller = self.scope.caller();
        let may_write =
            self.scope.fetch_optional(&sql::CHECK_WRITE, &check_values(target, owner_id), |_| Ok(())).await?;
        may_write.ok_or_else(|| denied(caller))
    }
}

/// The values of `CHECK_WRITE`.
fn check_values(target: &FileTarget, owner_id: Option<Uuid>) -> [Value<'_>; 5] {
    let (access, first_segment) = (target.access.as_str().into(), target.path.first_segment().into());
    [target.bucket.as_str().into(), access, target.space_id.into(), first_segment, owner_id.into()]
}

/// Checks whether a file may be written. If its statement changed nothing and this check passes, an intent is in the way.
///
/// # Errors
/// 401 or 403 if the policy refuses; 409 if there is a file that must not be replaced, or if a file and a folder would share a
/// name; 412 if `if_match` names another version.
pub(super) async fn check_new_file(transaction: &mut Transaction<'_>, new: &NewFile, caller: Caller) -> Result<()> {
    let target = &new.target;
    let may_write =
        transaction.fetch_optional(&sql::CHECK_WRITE, &check_values(target, new.owner_id), |_| Ok(())).await?;
    may_write.ok_or_else(|| denied(caller))?;
    let values = [target.bucket.as_str().into(), target.path.as_str().into()];
    let read = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get_optional::<bool>(1)?));
    let existing = transaction.fetch_optional(&sql::EXISTING, &values, read).await?;
    if existing.as_ref().is_some_and(|(_, may_update)| *may_update != Some(true)) {
        return Err(denied(caller));
    }
    let etag = existing.map(|(etag, _)| etag);
    if new.if_match.as_ref().is_some_and(|wanted| *wanted != etag.as_deref().unwrap_or_default()) {
        return Err(changed(target, etag.as_deref()));
    }
    if etag.is_some() && !new.upsert {
        return Err(Error::file(409, "The file already exists").with_reason(target.key().to_string()));
    }
    let (inside, after) = target.inside();
    let values = [target.bucket.as_str().into(), target.folders().into(), inside.into(), after.into()];
    match transaction.fetch_optional(&sql::NAME_IS_TAKEN, &values, |_| Ok(())).await? {
        None => Ok(()),
        Some(()) => Err(Error::folder_in_the_way(target.key())),
    }
}

/// Checks whether the caller may delete the source of a move, whose path the transaction has locked.
///
/// # Errors
/// 401 or 403 if the policy refuses; 404 if the file is gone or has another version than the move read.
pub(super) async fn check_source(
    transaction: &mut Transaction<'_>,
    bucket: &str,
    (path, etag): &(String, String),
    caller: Caller,
) -> Result<()> {
    let version = [bucket.into(), path.as_str().into(), etag.as_str().into()];
    if transaction.fetch_optional(&sql::CHECK_DELETE, &version, |_| Ok(())).await?.is_some() {
        return Ok(());
    }
    let found = transaction.fetch_optional(&sql::EXISTING, &version[..2], |row| row.get::<String>(0)).await?;
    Err(if found.as_ref() == Some(etag) { denied(caller) } else { missing() })
}

/// The policy refuses.
pub(super) fn denied(caller: Caller) -> Error {
    match caller {
        Caller::Anonymous => Error::file(401, "only a user may write here"),
        Caller::User(_) | Caller::Service => Error::file(403, "the policy of the bucket refuses the write"),
    }
}

/// The policy refuses to delete a file that the caller sees. `before` is the number of files that the call has deleted.
pub(super) fn refused_deletion(caller: Caller, path: &str, before: u64) -> Error {
    let status = if caller == Caller::Anonymous { 401 } else { 403 };
    Error::file(status, format!("the caller may not delete {path:?}; {before} files before it were deleted"))
}

/// `if_match` names another version than the file has; `None` if there is no file.
pub(super) fn changed(target: &FileTarget, etag: Option<&str>) -> Error {
    Error::file(412, "The file has another version than if_match").with_reason(match etag {
        Some(etag) => format!("{} has the etag {etag}", target.key()),
        None => format!("{} does not exist", target.key()),
    })
}

/// A dead writer's intent is in the way, or another writer was faster.
pub(super) fn busy(key: &ObjectKey) -> Error {
    Error::file(503, "Another writer changes the file").with_reason(key.to_string())
}

/// There is no file, or the caller may not see it.
pub(super) fn missing() -> Error {
    Error::file(404, "")
}
