//! Copies inside a store, with attributes of their own.
//!
//! `object_store` copies an object only with the attributes that it has. [`Remote::stage_copy`] gives other ones to its task, and the
//! module `copy_request` adds them to the request and signs it.
//!
//! Invariant: [`Remote::stage_copy`] returns a stage only if the store shows the new version and the size of the source at it, and if
//! the source has stayed the same meanwhile. In every other case it removes the stage.

use std::sync::atomic::Ordering;

use futures_util::future::join;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use object_store::{Attribute, ObjectStoreExt};

use super::{CallError, MAX_COPY, Remote, RemoteReader, RemoteStaged, copy_timeout, reader, stage::to_attributes};
use crate::{
    error::Result,
    objects::{ObjectAttributes, ObjectStat},
};

tokio::task_local! {
    /// The headers that the copy of this task gets.
    pub(super) static HEADERS: HeaderMap;
}

impl Remote {
    /// Whether [`stage_copy`](Remote::stage_copy) may return a stage.
    pub(in crate::objects) fn copies_on_server(&self) -> bool {
        self.0.copies_on_server.load(Ordering::Relaxed)
    }

    /// Has the store copy an object to a stage with these attributes. `None` if the store cannot, or if the object changed.
    ///
    /// # Errors
    /// `Unavailable` if the store is busy or does not answer: it would not take the bytes from this process either.
    pub(in crate::objects) async fn stage_copy(
        &self,
        source: &RemoteReader,
        attributes: ObjectAttributes,
    ) -> Result<Option<RemoteStaged>> {
        let version = attributes.version.clone();
        if !self.copies_on_server() || source.size > MAX_COPY || version.is_none() || source.version.is_none() {
            return Ok(None);
        }
        let Some(headers) = headers(attributes, source.etag.as_deref()) else { return Ok(None) };
        // Dropping it removes the stage, also if the caller drops the future while the store copies.
        let staged = RemoteStaged::begin(self, version.clone());
        let (remote, from, to) = (self.clone(), source.path.clone(), self.staging_path(staged.id())?);
        let target = to.clone();
        let copy = async move {
            HEADERS.scope(headers, remote.store().copy(&from, &to)).await?;
            Ok(staged)
        };
        let staged = match self.run_within(copy_timeout(source.size), copy).await {
            Ok(staged) => staged,
            Err(CallError::Store(error)) if !reader::is_out_of_reach(&error) => {
                let error = CallError::Store(error).into_error();
                tracing::debug!(%error, "the object store does not copy with other attributes");
                return Ok(None);
            }
            Err(error) => return Err(error.into_error()),
        };
        let (copied, current) = join(reader::stat(self, &target), source.etag_now()).await;
        let (Ok(Some(copied)), Ok(current)) = (copied, current) else { return Ok(None) };
        if copied.version == source.version {
            tracing::info!("the object store keeps the attributes of a copy; copies pass through this process");
            self.0.copies_on_server.store(false, Ordering::Relaxed);
        }
        let is_copy = copied == ObjectStat { size: source.size, version } && current == source.etag;
        Ok(is_copy.then_some(staged))
    }
}

/// The headers of a copy that has these attributes, if the source still has this etag. `None` if a header cannot have them.
fn headers(attributes: ObjectAttributes, etag: Option<&str>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert("x-amz-metadata-directive", HeaderValue::from_static("REPLACE"));
    headers.insert("x-amz-copy-source-if-match", HeaderValue::from_str(etag?).ok()?);
    for (attribute, value) in &to_attributes(attributes) {
        let name = match attribute {
            Attribute::ContentType => header::CONTENT_TYPE,
            Attribute::CacheControl => header::CACHE_CONTROL,
            Attribute::Metadata(name) => HeaderName::try_from(format!("x-amz-meta-{name}")).ok()?,
            _ => return None,
        };
        headers.insert(name, HeaderValue::from_str(value).ok()?);
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::{super::CALL_TIMEOUT, *};

    #[test]
    fn a_line_break_in_an_attribute_makes_no_header() {
        let of = |name: &str, value: &str| ObjectAttributes {
            version: Some("one".to_owned()),
            metadata: vec![(name.to_owned(), value.to_owned())],
            ..ObjectAttributes::default()
        };
        let good = headers(of("colour", "red"), Some("\"etag\"")).expect("headers");
        assert_eq!(good.get("x-amz-meta-colour").map(HeaderValue::as_bytes), Some(b"red".as_slice()));
        for (name, value) in [("colour", "red\r\nx-amz-acl: public-read"), ("a\nb", "red"), ("a b", "red"), ("a:b", "")]
        {
            assert_eq!(headers(of(name, value), Some("\"etag\"")), None, "{name:?} {value:?}");
        }
        assert_eq!(headers(of("colour", "red"), None), None, "the source has no etag");
    }

    #[test]
    fn the_time_limit_grows_with_the_size() {
        assert_eq!(copy_timeout(0), CALL_TIMEOUT);
        assert_eq!(copy_timeout(MAX_COPY), CALL_TIMEOUT * 21);
    }
}
