//! Holds: second names of objects, under which their bytes stay readable when the objects are replaced or removed.
//!
//! Invariant: a name of a hold gives the bytes that the object had when it was held.

use std::collections::HashSet;

use parking_lot::Mutex;

use super::{Backend, ObjectKey, ObjectReader, Objects, folder::FolderHold, remote::RemoteHold, with_backend};
use crate::error::Result;

/// The folder of the holds, below the work folder.
pub(super) const HELD: &str = "held";

/// Second names of objects. [`Hold::end`] removes them. Dropping it does so in the background.
#[derive(Debug)]
pub(crate) struct Hold {
    links: Backend<FolderHold, RemoteHold>,
    names: Mutex<HashSet<String>>,
}

/// What [`Hold::add`] found at a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// The object, of the expected size.
    Yes,
    /// Nothing.
    Gone,
    /// An object of this size, which is not held.
    OtherSize(u64),
}

impl Objects {
    /// Begins a hold without names.
    pub(crate) async fn begin_hold(&self) -> Result<Hold> {
        let links = match &self.backend {
            Backend::Folder(folder) => Backend::Folder(folder.begin_hold().await?),
            Backend::Remote(remote) => Backend::Remote(remote.begin_hold()),
        };
        Ok(Hold { links, names: Mutex::default() })
    }
}

impl Hold {
    /// Whether it has this name. Requires that no [`add`](Hold::add) of the name has failed.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.lock().contains(name)
    }

    /// Gives the bytes of the object at a key a name, if they are of this size. After an error the name may have bytes, which the end
    /// of the hold removes.
    pub(crate) async fn add(&self, key: &ObjectKey, name: &str, size: u64) -> Result<Held> {
        // First: a store may have made the copy although its answer is lost.
        self.names.lock().insert(name.to_owned());
        let found = match &self.links {
            Backend::Folder(hold) => hold.add(key, name).await?,
            Backend::Remote(hold) => hold.add(key, name, size).await?,
        };
        if found == Some(size) {
            return Ok(Held::Yes);
        }
        self.remove(name).await?;
        Ok(found.map_or(Held::Gone, Held::OtherSize))
    }

    /// Removes a name.
    pub(crate) async fn remove(&self, name: &str) -> Result<()> {
        with_backend!(&self.links, hold => hold.remove(name).await)?;
        self.names.lock().remove(name);
        Ok(())
    }

    /// Opens the bytes of a name. `None` if somebody removed it.
    pub(crate) async fn open(&self, name: &str) -> Result<Option<ObjectReader>> {
        Ok(match &self.links {
            Backend::Folder(hold) => hold.open(name).await?.map(|it| ObjectReader(Backend::Folder(it))),
            Backend::Remote(hold) => hold.open(name).await?.map(|it| ObjectReader(Backend::Remote(it))),
        })
    }

    /// Removes every name.
    pub(crate) async fn end(self) -> Result<()> {
        match &self.links {
            Backend::Folder(hold) => hold.end().await,
            Backend::Remote(hold) => {
                let names = self.names.lock().clone();
                hold.end(names).await?;
                // After a failure, dropping this hold removes them later.
                self.names.lock().clear();
                Ok(())
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        match &self.links {
            Backend::Folder(hold) => hold.end_later(),
            Backend::Remote(hold) => hold.end_later(std::mem::take(&mut *self.names.lock())),
        }
    }
}
