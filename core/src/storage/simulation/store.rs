//! An object store whose requests wait for the scheduler.
//!
//! Invariant: a request has its effect at one moment. That moment may come after the caller has given up.

use std::{fmt, ops::Range, pin::Pin};

use bytes::Bytes;
use futures_util::{StreamExt, stream, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, UploadPart, path::Path,
};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{
    request::{Answer, Reply, Request},
    world::{Step, World},
};

type Result<T> = object_store::Result<T>;
type Future<'a, T> = Pin<Box<dyn core::future::Future<Output = Result<T>> + Send + 'a>>;

impl fmt::Display for Request {
    /// Without the random names of staged bytes, so that the traces of two runs are equal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |path: &Path| {
            let path = path.as_ref();
            let known = ["staging", "held", "uploads"].into_iter().find(|name| path.contains(name));
            known.or_else(|| path.contains("/probe-").then_some("probe")).unwrap_or(path).to_owned()
        };
        match self {
            Request::Put(path, payload, _) => write!(f, "put {} of {}", name(path), payload.content_length()),
            Request::Part(_) => write!(f, "put a part"),
            Request::Complete(_, path, payload, _) => {
                write!(f, "complete {} of {}", name(path), payload.content_length())
            }
            Request::Get(path, options) if options.head => write!(f, "head {}", name(path)),
            Request::Get(path, _) => write!(f, "get {}", name(path)),
            Request::Copy(from, to) => write!(f, "copy {} to {}", name(from), name(to)),
            Request::Delete(path) => write!(f, "delete {}", name(path)),
            Request::List(path) => write!(f, "list {}", name(path)),
        }
    }
}

/// The fault of a request.
pub(super) fn fault(what: &'static str) -> Error {
    Error::Generic { store: "simulated", source: what.into() }
}

/// The store of one client. All of them have the objects of the world.
#[derive(Debug)]
pub(super) struct SimulatedStore;

impl fmt::Display for SimulatedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("simulated")
    }
}

async fn call(request: Request) -> Answer {
    let (answer, answered) = oneshot::channel();
    let at_once = World::with(|world| {
        if world.is_instant {
            return Some(request.apply(&world.objects));
        }
        let issued_at = world.now;
        world.wait(Step::Store { request, answer, issued_at, is_mute: false });
        None
    });
    match at_once {
        Some(answer) => answer,
        None => answered.await.unwrap_or_else(|_| Err(fault("the simulation has ended"))),
    }
}

fn wrong_reply() -> Error {
    fault("a reply to another request")
}

/// An upload in parts. An object stands for it while it is open. The parts are sent to no place: only their answers matter, and
/// their bytes are sent when the upload is completed.
#[derive(Debug)]
struct SimulatedUpload {
    id: Path,
    location: Path,
    options: PutOptions,
    bytes: Vec<Bytes>,
}

impl MultipartUpload for SimulatedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.bytes.extend(data);
        let part = Request::Part(self.id.clone());
        Box::pin(async move { call(part).await.map(drop) })
    }

    fn complete<'s, 'f>(&'s mut self) -> Future<'f, PutResult>
    where
        's: 'f,
        Self: 'f,
    {
        let bytes = self.bytes.iter().cloned().collect();
        let complete = Request::Complete(self.id.clone(), self.location.clone(), bytes, self.options.clone());
        Box::pin(async move {
            match call(complete).await? {
                Reply::Put(result) => Ok(result),
                _ => Err(wrong_reply()),
            }
        })
    }

    fn abort<'s, 'f>(&'s mut self) -> Future<'f, ()>
    where
        's: 'f,
        Self: 'f,
    {
        let abort = Request::Delete(self.id.clone());
        Box::pin(async move { call(abort).await.map(drop) })
    }
}

impl ObjectStore for SimulatedStore {
    fn put_opts<'s, 'p, 'f>(
        &'s self,
        location: &'p Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Future<'f, PutResult>
    where
        's: 'f,
        'p: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            match call(Request::Put(location.clone(), payload, opts)).await? {
                Reply::Put(result) => Ok(result),
                _ => Err(wrong_reply()),
            }
        })
    }

    fn put_multipart_opts<'s, 'p, 'f>(
        &'s self,
        location: &'p Path,
        opts: PutMultipartOptions,
    ) -> Future<'f, Box<dyn MultipartUpload>>
    where
        's: 'f,
        'p: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let id = Path::from(format!("uploads/{}", Uuid::new_v4().simple()));
            call(Request::Put(id.clone(), PutPayload::new(), PutOptions::default())).await?;
            World::with(|world| world.uploads.push((id.to_string(), world.running)));
            let options = PutOptions { attributes: opts.attributes, ..PutOptions::default() };
            let upload = SimulatedUpload { id, location: location.clone(), options, bytes: Vec::new() };
            Ok(Box::new(upload) as Box<dyn MultipartUpload>)
        })
    }

    fn get_opts<'s, 'p, 'f>(&'s self, location: &'p Path, options: GetOptions) -> Future<'f, GetResult>
    where
        's: 'f,
        'p: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            match call(Request::Get(location.clone(), options)).await? {
                Reply::Get(result) => Ok(result),
                _ => Err(wrong_reply()),
            }
        })
    }

    fn get_ranges<'s, 'p, 'r, 'f>(&'s self, _location: &'p Path, _ranges: &'r [Range<u64>]) -> Future<'f, Vec<Bytes>>
    where
        's: 'f,
        'p: 'f,
        'r: 'f,
        Self: 'f,
    {
        Box::pin(async { Err(fault("nobody reads several ranges")) })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let delete = |location: Result<Path>| async {
            let location = location?;
            call(Request::Delete(location.clone())).await.map(|_| location)
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let prefix = prefix.cloned().unwrap_or_default();
        let listed = async move {
            match call(Request::List(prefix)).await {
                Ok(Reply::List(objects)) => stream::iter(objects.into_iter().map(Ok)).boxed(),
                Ok(_) => stream::iter([Err(wrong_reply())]).boxed(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        stream::once(listed).flatten().boxed()
    }

    fn list_with_delimiter<'s, 'p, 'f>(&'s self, _prefix: Option<&'p Path>) -> Future<'f, ListResult>
    where
        's: 'f,
        'p: 'f,
        Self: 'f,
    {
        Box::pin(async { Err(fault("nobody lists with a delimiter")) })
    }

    fn copy_opts<'s, 'p, 't, 'f>(&'s self, from: &'p Path, to: &'t Path, _options: CopyOptions) -> Future<'f, ()>
    where
        's: 'f,
        'p: 'f,
        't: 'f,
        Self: 'f,
    {
        Box::pin(async move { call(Request::Copy(from.clone(), to.clone())).await.map(drop) })
    }
}
