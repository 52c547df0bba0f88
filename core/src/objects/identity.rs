//! The identity of a store, and the place where it is.

use std::path::Path;

use super::{Backend, Objects, with_backend};
use crate::error::{Error, Result};

impl Objects {
    /// The id of the store, which [`write_id`](Objects::write_id) has written. `None` if the store has none, or does not
    /// exist.
    pub(crate) async fn read_id(&self) -> Result<Option<String>> {
        let id = with_backend!(&self.backend, store => store.read_id().await?);
        Ok(id.map(|id| String::from_utf8_lossy(&id).trim().to_owned()).filter(|id| !id.is_empty()))
    }

    /// Gives the store an id: the file or object `.townsquare/store`. Creates the folder. Returns false if `is_first` and the store
    /// has an id, as far as the store can tell; a folder needs its lock for that.
    pub(crate) async fn write_id(&self, id: &str, is_first: bool) -> Result<bool> {
        let content = format!("{id}\n");
        match &self.backend {
            Backend::Folder(folder) => folder.write_id(content).await.map(|()| true),
            Backend::Remote(remote) => remote.write_id(content, is_first).await,
        }
    }

    /// The place of a store that this one lies in. It would take the objects of this one for its own.
    pub(crate) async fn surrounding_store(&self) -> Result<Option<String>> {
        with_backend!(&self.backend, store => store.surrounding_store().await)
    }

    /// # Errors
    /// `InvalidInput` if the file `target` of the host would lie in the folder of the store, which would take it for an orphan.
    pub(crate) fn require_outside(&self, target: &Path) -> Result<()> {
        let Backend::Folder(folder) = &self.backend else { return Ok(()) };
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // A folder that does not exist has an error of its own.
        let (Ok(parent), Ok(store)) = (parent.canonicalize(), folder.path().canonicalize()) else { return Ok(()) };
        match parent.starts_with(store) {
            false => Ok(()),
            true => Err(Error::invalid_input(format!(
                "{} lies in the folder of the object store, whose repair would delete it",
                target.display()
            ))),
        }
    }

    /// Whether two stores have one location, as far as it is known without a call.
    pub(crate) fn is_same_place(&self, other: &Objects) -> bool {
        match (&self.backend, &other.backend) {
            (Backend::Folder(one), Backend::Folder(other)) => one.path() == other.path(),
            (Backend::Remote(one), Backend::Remote(other)) => one.url().is_some() && one.url() == other.url(),
            _ => false,
        }
    }

    /// Whether a folder exists. True for another store.
    pub(crate) async fn exists(&self) -> Result<bool> {
        match &self.backend {
            Backend::Folder(folder) => folder.exists().await,
            Backend::Remote(_) => Ok(true),
        }
    }

    /// Whether the store is a folder that was copied from another one, which nobody else uses.
    pub(crate) async fn is_copied_folder(&self) -> Result<bool> {
        match &self.backend {
            Backend::Folder(folder) => folder.is_copy().await,
            Backend::Remote(_) => Ok(false),
        }
    }

    /// Has a folder record its place, so that a copy of it is noticed.
    pub(crate) async fn record_place(&self) -> Result<()> {
        match &self.backend {
            Backend::Folder(folder) => folder.record_place().await,
            Backend::Remote(_) => Ok(()),
        }
    }

    /// Has a folder with another id refuse every access: another folder took its place, or it was unmounted.
    pub(crate) fn expect_id(&self, id: Option<&str>) {
        if let Backend::Folder(folder) = &self.backend {
            folder.expect_id(id);
        }
    }
}
