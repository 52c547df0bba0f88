//! The requests to the object store, and their effect.

use futures_util::{FutureExt, TryStreamExt};
use object_store::{
    GetOptions, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutOptions, PutPayload, PutResult,
    memory::InMemory, path::Path,
};

/// The answer of the store.
pub(super) type Answer = object_store::Result<Reply>;

pub(super) enum Reply {
    Done,
    Put(PutResult),
    Get(GetResult),
    List(Vec<ObjectMeta>),
}

#[derive(Clone)]
pub(super) enum Request {
    Put(Path, PutPayload, PutOptions),
    /// Part of the upload that an object stands for.
    Part(Path),
    /// Makes the bytes an object and ends the upload.
    Complete(Path, Path, PutPayload, PutOptions),
    Get(Path, GetOptions),
    Copy(Path, Path),
    Delete(Path),
    List(Path),
}

impl Request {
    pub(super) fn changes(&self) -> bool {
        matches!(self, Request::Put(..) | Request::Complete(..) | Request::Copy(..) | Request::Delete(_))
    }

    /// Lets the request have its effect.
    pub(super) fn apply(&self, objects: &InMemory) -> Answer {
        let now = "a store in memory answers at once";
        match self.clone() {
            Request::Put(path, payload, options) => {
                objects.put_opts(&path, payload, options).now_or_never().expect(now).map(Reply::Put)
            }
            Request::Part(upload) => objects.head(&upload).now_or_never().expect(now).map(|_| Reply::Done),
            Request::Complete(upload, path, payload, options) => {
                objects.head(&upload).now_or_never().expect(now)?;
                objects.delete(&upload).now_or_never().expect(now)?;
                objects.put_opts(&path, payload, options).now_or_never().expect(now).map(Reply::Put)
            }
            Request::Get(path, options) => objects.get_opts(&path, options).now_or_never().expect(now).map(Reply::Get),
            Request::Copy(from, to) => objects.copy(&from, &to).now_or_never().expect(now).map(|()| Reply::Done),
            Request::Delete(path) => objects.delete(&path).now_or_never().expect(now).map(|()| Reply::Done),
            Request::List(prefix) => {
                objects.list(Some(&prefix)).try_collect().now_or_never().expect(now).map(Reply::List)
            }
        }
    }
}
