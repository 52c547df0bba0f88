//! The probe of a remote store: whether its bucket exists, and whether the credentials may use it.

use object_store::{Error as StoreError, ObjectStoreExt};
use uuid::Uuid;

use super::{CallError, Remote, WORK_FOLDER, denial, next, part};
use crate::error::{Error, Result};

impl Remote {
    /// Writes, reads and deletes an object in the work folder. If the store only lets objects be read, a warning says so.
    ///
    /// # Errors
    /// `Config` if the bucket does not exist, or if the store denies the access; `Unavailable` if it does not answer.
    pub(in crate::objects) async fn probe(&self) -> Result<()> {
        if self.has_locks() {
            return Ok(());
        }
        let name = format!("probe-{}", Uuid::new_v4().simple());
        let path = self.0.prefix.clone().join(WORK_FOLDER).join(part(&name)?);
        let remote = self.clone();
        let written = self.run(async move {
            remote.store().put(&path, name.clone().into()).await?;
            let found = remote.store().get(&path).await?.bytes().await?;
            remote.store().delete(&path).await?;
            Ok(found == name)
        });
        match written.await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::unavailable("The object store returns other bytes than were written")),
            Err(CallError::Store(error)) if is_denied(&error) => {
                if self.check_reading().await.is_err() {
                    return Err(refused(CallError::Store(error)));
                }
                tracing::warn!(%error, "the object store lets objects be read only");
                Ok(())
            }
            Err(error) => Err(refused(error)),
        }
    }

    /// Reads the beginning of a listing.
    async fn check_reading(&self) -> Result<()> {
        let mut objects = self.store().list(Some(&self.0.prefix.clone().join(WORK_FOLDER)));
        self.run(async move { next(&mut objects).await.transpose() }).await.map(drop).map_err(refused)
    }
}

fn is_denied(error: &StoreError) -> bool {
    matches!(error, StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. })
}

fn refused(error: CallError) -> Error {
    match error {
        CallError::Store(error @ StoreError::NotFound { .. }) => {
            Error::config("Option storage_url: the bucket does not exist").caused_by(error)
        }
        CallError::Store(error) if denial::is_of_clock(&error) => Error::config(
            "Option storage_url: the object store denies the access: the clock of this host, or that of the store, is wrong",
        )
        .caused_by(error),
        CallError::Store(error) if is_denied(&error) => Error::config(
            "Option storage_url: the object store denies the access; check the credentials and their rights",
        )
        .caused_by(error),
        error => error.into_error(),
    }
}
