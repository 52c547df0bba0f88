//! Holds in a remote store or in memory: copies below `.townsquare/held/<id>`.

use std::collections::HashSet;

use object_store::{ObjectStoreExt, path::Path};
use uuid::Uuid;

use super::{CallError, Remote, RemoteReader, cleanup::Attempts, copy_timeout, part};
use crate::{
    error::Result,
    objects::{
        hold::HELD,
        key::{ObjectKey, WORK_FOLDER},
    },
};

/// Second names of objects.
#[derive(Debug)]
pub(in crate::objects) struct RemoteHold {
    remote: Remote,
    id: String,
}

impl Remote {
    pub(in crate::objects) fn begin_hold(&self) -> RemoteHold {
        RemoteHold { remote: self.clone(), id: Uuid::new_v4().simple().to_string() }
    }

    /// The path below which the names of all holds are.
    pub(super) fn held_path(&self) -> Path {
        self.0.prefix.clone().join(WORK_FOLDER).join(HELD)
    }
}

impl RemoteHold {
    /// Returns the size of the object; `None` if there is none. `size` is the expected one.
    pub(in crate::objects) async fn add(&self, key: &ObjectKey, name: &str, size: u64) -> Result<Option<u64>> {
        let (remote, source, target) = (self.remote.clone(), self.remote.path(key)?, self.path(name)?);
        let copy = async move {
            remote.store().copy(&source, &target).await?;
            remote.store().head(&target).await.map(|held| held.size)
        };
        match self.remote.run_within(copy_timeout(size), copy).await {
            Err(CallError::Store(object_store::Error::NotFound { .. })) => Ok(None),
            size => size.map(Some).map_err(CallError::into_error),
        }
    }

    pub(in crate::objects) async fn remove(&self, name: &str) -> Result<()> {
        self.remote.delete(self.path(name)?).await
    }

    pub(in crate::objects) async fn open(&self, name: &str) -> Result<Option<RemoteReader>> {
        RemoteReader::open(&self.remote, self.path(name)?, None).await
    }

    pub(in crate::objects) async fn end(&self, names: HashSet<String>) -> Result<()> {
        for name in names {
            self.remove(&name).await?;
        }
        Ok(())
    }

    pub(in crate::objects) fn end_later(&self, names: HashSet<String>) {
        if names.is_empty() {
            return;
        }
        let hold = RemoteHold { remote: self.remote.clone(), id: self.id.clone() };
        let end = async move {
            let mut attempts = Attempts::default();
            while let Err(error) = hold.end(names.clone()).await {
                if !attempts.again(&hold.remote).await {
                    tracing::debug!(%error, "the copies of a hold were not removed");
                    return;
                }
            }
        };
        self.remote.clean_up(end);
    }

    fn path(&self, name: &str) -> Result<Path> {
        Ok(self.remote.held_path().join(part(&self.id)?).join(part(name)?))
    }
}
