//! The objects of another program, which are only read: a folder or a store with the keys `BUCKET/NAME`, or a store with a bucket for
//! each bucket.
//!
//! Invariant: no name leads out of the folder or the bucket, and nothing is written, not even the id of a store.

#[cfg(feature = "s3")]
use std::collections::BTreeMap;

#[cfg(feature = "s3")]
use super::{Backend, remote::Remote};
use super::{ObjectKey, ObjectReader, Objects};
use crate::{
    config::FilesLocation,
    error::{Error, Result},
    threads::RuntimeHandle,
};

/// The place of the objects.
#[derive(Debug)]
pub(crate) struct ForeignObjects(Place);

#[derive(Debug)]
enum Place {
    Whole(Objects),
    /// A store for each bucket.
    #[cfg(feature = "s3")]
    Buckets(BTreeMap<String, Remote>),
}

impl ForeignObjects {
    /// Sets up a place without calling it. `is_each`: each of `buckets` is a bucket of the store; otherwise the names of buckets are
    /// a part of the keys.
    ///
    /// # Errors
    /// `Config`.
    pub(crate) fn open(
        location: FilesLocation,
        is_each: bool,
        buckets: impl Iterator<Item = String>,
        runtime: &RuntimeHandle,
    ) -> Result<ForeignObjects> {
        let opened = match location {
            #[cfg(feature = "s3")]
            FilesLocation::Remote { url, environment } if is_each => {
                let stores = buckets.map(|bucket| {
                    let mut url = url.clone();
                    // A bucket of the library has a name that is a host.
                    url.set_host(Some(&bucket)).map_err(|_| Error::config("The name of a bucket is no host"))?;
                    Ok((bucket, Remote::connect(&url, &environment, runtime.clone())?))
                });
                stores.collect::<Result<_>>().map(Place::Buckets)
            }
            location => {
                let _ = (is_each, buckets);
                Objects::open(location, runtime).map(Place::Whole)
            }
        };
        opened.map(ForeignObjects).map_err(of_place)
    }

    /// Opens the object of `key`. `None` if there is none.
    pub(crate) async fn open_object(&self, key: &ObjectKey) -> Result<Option<ObjectReader>> {
        match &self.0 {
            Place::Whole(objects) => objects.open_object(key).await,
            #[cfg(feature = "s3")]
            Place::Buckets(stores) => {
                key.check()?;
                let Some(store) = stores.get(&key.bucket) else { return Ok(None) };
                Ok(store.open_name(&key.path).await?.map(|reader| ObjectReader(Backend::Remote(reader))))
            }
        }
    }

    /// The size of the object of `key`. `None` if there is none.
    pub(crate) async fn size(&self, key: &ObjectKey) -> Result<Option<u64>> {
        let found = match &self.0 {
            Place::Whole(objects) => objects.stat(key).await?,
            #[cfg(feature = "s3")]
            Place::Buckets(stores) => {
                key.check()?;
                let Some(store) = stores.get(&key.bucket) else { return Ok(None) };
                store.stat_name(&key.path).await?
            }
        };
        Ok(found.map(|found| found.size))
    }

    /// Whether a folder exists. True for a store.
    pub(crate) async fn exists(&self) -> Result<bool> {
        match &self.0 {
            Place::Whole(objects) => objects.exists().await,
            #[cfg(feature = "s3")]
            Place::Buckets(_) => Ok(true),
        }
    }
}

/// Names the place in an error about an option of the library.
fn of_place(error: Error) -> Error {
    match error.message().strip_prefix("Option storage_url") {
        Some(rest) => Error::config(format!("The place of the project's files{rest}")).caused_by(error),
        None => error,
    }
}
