//! `Client` and `AsyncClient`: opening, closing, and the way to the areas.
//!
//! Invariant: both are the same class under two names; what differs is the face of their door.

use std::{
    future::{Future, poll_fn},
    path::PathBuf,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
};

use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyDictMethods, PyTuple, PyType},
};
use townsquare::{Config, Operation};

use crate::{
    argument::Text,
    auth, communities,
    convert::Nothing,
    courier::Courier,
    discovery,
    enter::{Door, Face, enter_apart},
    errors::Failure,
    fidgets,
    handle::{Handle, forked},
    options::configuration,
    process, spaces,
};

/// One handle; the methods of both faces.
#[pyclass(name = "ClientMethods", frozen, subclass, module = "townsquare._native")]
pub(crate) struct Methods {
    door: Door,
    discovery: PyOnceLock<Py<PyAny>>,
    communities: PyOnceLock<Py<PyAny>>,
    spaces: PyOnceLock<Py<PyAny>>,
    fidgets: PyOnceLock<Py<PyAny>>,
    auth: PyOnceLock<Py<PyAny>>,
}

impl From<Door> for Methods {
    fn from(door: Door) -> Methods {
        let area = PyOnceLock::new;
        Methods { door, discovery: area(), communities: area(), spaces: area(), fidgets: area(), auth: area() }
    }
}

/// One handle: a store, a catalog cache and a caller.
#[pyclass(frozen, extends = Methods, module = "townsquare")]
pub(crate) struct Client;

/// The same, every method a coroutine.
#[pyclass(frozen, extends = Methods, module = "townsquare")]
pub(crate) struct AsyncClient;

#[pymethods]
impl Methods {
    /// Ends the client and every thread of it; closing twice is fine.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.door.share().lend();
        if process::is_visiting() {
            // Closing waits for callbacks to return, and this is one of them.
            return self.door.enter(py, "close", |handle| async move {
                if let Ok(client) = handle.client() {
                    let mut closing = pin!(client.close());
                    // Once begun it goes on by itself.
                    poll_fn(|context| {
                        let _ = closing.as_mut().poll(context);
                        Poll::Ready(())
                    })
                    .await;
                }
                Ok(Nothing)
            });
        }
        enter_apart(py, self.door.face(), "close", self.door.share().courier(), async move {
            // In a child process it is the parent's to close.
            if let Ok(client) = handle.client() {
                client.close().await;
            }
            Ok(Nothing)
        })
    }

    /// Whether the client was closed, or belongs to the parent process.
    #[getter]
    fn closed(&self) -> bool {
        self.door.share().client().map_or(true, townsquare::Client::is_closed)
    }

    /// The mini app directory.
    #[getter]
    fn discovery<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        Ok(self.discovery.get_or_try_init(py, || discovery::area(py, self.door.clone()))?.bind(py))
    }

    /// Communities: configuration, domains, registered spaces.
    #[getter]
    fn communities<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        Ok(self.communities.get_or_try_init(py, || communities::area(py, self.door.clone()))?.bind(py))
    }

    /// Spaces.
    #[getter]
    fn spaces<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        Ok(self.spaces.get_or_try_init(py, || spaces::area(py, self.door.clone()))?.bind(py))
    }

    /// The fidgets of spaces.
    #[getter]
    fn fidgets<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        Ok(self.fidgets.get_or_try_init(py, || fidgets::area(py, self.door.clone()))?.bind(py))
    }

    /// Accounts, sessions and sign-in.
    #[getter]
    fn auth<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        Ok(self.auth.get_or_try_init(py, || auth::area(py, self.door.clone()))?.bind(py))
    }

    /// The same store, past row-level security.
    fn as_service<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let face = self.door.face();
        self.door.enter(py, "as_service", move |handle| async move {
            let client = handle.client()?.as_service();
            Ok(Opened { handle: Handle::new(client, Arc::clone(handle.courier())), face })
        })
    }

    /// The same store, as the user of that session.
    fn as_user<'py>(&self, py: Python<'py>, access_token: Text) -> PyResult<Bound<'py, PyAny>> {
        let face = self.door.face();
        self.door.enter(py, Operation::AsUser, move |handle| async move {
            let client = handle.client()?.as_user(&access_token.named("access_token")?).await?;
            Ok(Opened { handle: Handle::new(client, Arc::clone(handle.courier())), face })
        })
    }

    /// Writes a consistent copy of the SQLite database while writers go on.
    fn backup<'py>(&self, py: Python<'py>, target: PathBuf) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter_detached(py, Operation::Backup, |handle| async move {
            handle.client()?.backup(target).await?;
            Ok(Nothing)
        })
    }

    fn __repr__(&self) -> String {
        let name = match self.door.face() {
            Face::Blocking => "Client",
            Face::Awaiting => "AsyncClient",
        };
        format!("<townsquare.{name} {}>", if self.closed() { "closed" } else { "open" })
    }
}

#[pymethods]
impl Client {
    /// Opens a client; see the stub for the options.
    #[classmethod]
    #[pyo3(signature = (data_dir = None, **options), text_signature = "(data_dir=None, *, database_url=None, catalog_url=None, catalog_api_key=None, refresh_interval=900, catalog_timeout=10, durability='full', persist_session=False, expose_owner_email=True, **options)")]
    fn open<'py>(
        class: &Bound<'py, PyType>,
        data_dir: Option<PathBuf>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        open(class.py(), Face::Blocking, configuration(class.py(), data_dir, options)?)
    }

    /// Puts a copy made by `backup` into a folder that no client has open.
    #[staticmethod]
    fn restore(py: Python<'_>, source: PathBuf, data_dir: PathBuf) -> PyResult<Bound<'_, PyAny>> {
        restore(py, Face::Blocking, source, data_dir)
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*exc))]
    fn __exit__(this: &Bound<'_, Self>, exc: &Bound<'_, PyTuple>) -> PyResult<()> {
        let _ = exc;
        this.as_super().get().close(this.py()).map(drop)
    }
}

#[pymethods]
impl AsyncClient {
    /// Opens a client; see the stub for the options.
    #[classmethod]
    #[pyo3(signature = (data_dir = None, **options), text_signature = "(data_dir=None, *, database_url=None, catalog_url=None, catalog_api_key=None, refresh_interval=900, catalog_timeout=10, durability='full', persist_session=False, expose_owner_email=True, **options)")]
    fn open<'py>(
        class: &Bound<'py, PyType>,
        data_dir: Option<PathBuf>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        open(class.py(), Face::Awaiting, configuration(class.py(), data_dir, options)?)
    }

    /// Puts a copy made by `backup` into a folder that no client has open.
    #[staticmethod]
    fn restore(py: Python<'_>, source: PathBuf, data_dir: PathBuf) -> PyResult<Bound<'_, PyAny>> {
        restore(py, Face::Awaiting, source, data_dir)
    }

    fn __aenter__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let itself = this.clone().unbind();
        this.as_super().get().door.enter(this.py(), "__aenter__", |_| async move { Ok(itself) })
    }

    #[pyo3(signature = (*exc))]
    fn __aexit__<'py>(this: &Bound<'py, Self>, exc: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let _ = exc;
        this.as_super().get().close(this.py())
    }
}

fn open(py: Python<'_>, face: Face, config: Config) -> PyResult<Bound<'_, PyAny>> {
    let courier = Arc::new(Courier::default());
    let for_it = Arc::clone(&courier);
    enter_apart(py, face, Operation::Open, &courier, async move {
        Ok(Opened { handle: Handle::new(townsquare::Client::open(config).await?, for_it), face })
    })
}

fn restore(py: Python<'_>, face: Face, source: PathBuf, data_dir: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    enter_apart(py, face, Operation::Restore, &Arc::default(), async move {
        townsquare::Client::restore(source, data_dir)?;
        Ok(Nothing)
    })
}

/// A client on its way to Python.
struct Opened {
    handle: Handle,
    face: Face,
}

impl<'py> IntoPyObject<'py> for Opened {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let methods = PyClassInitializer::from(Methods::from(Door::new(self.handle, self.face)));
        Ok(match self.face {
            Face::Blocking => Bound::new(py, methods.add_subclass(Client))?.into_any(),
            Face::Awaiting => Bound::new(py, methods.add_subclass(AsyncClient))?.into_any(),
        })
    }
}

/// The client of the process, as the one object that `shared` hands out.
static SHARED: Mutex<Option<(u64, Py<Client>)>> = Mutex::new(None);

/// The process-wide client: the first call opens it, later calls return the same one.
#[pyfunction]
#[pyo3(signature = (data_dir = None, **options))]
pub(crate) fn shared(
    py: Python<'_>,
    data_dir: Option<PathBuf>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<Client>> {
    let refuse = |failure: Failure| failure.into_exception(py, Some(Operation::Open));
    let known = || SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if known().as_ref().is_some_and(|(born, _)| *born != process::generation()) {
        return Err(refuse(forked()));
    }
    let as_it_is = data_dir.is_none() && options.is_none_or(PyDictMethods::is_empty);
    let config = configuration(py, data_dir, options)?;
    let client = process::wait(py, async move {
        if as_it_is { townsquare::Client::shared().await } else { townsquare::Client::shared_with(config).await }
    });
    let client = client?.map_err(|error| refuse(error.into()))?;
    if let Some((_, object)) = &*known()
        && !object.bind(py).as_super().get().closed()
    {
        return Ok(object.clone_ref(py));
    }
    let opened = Opened { handle: Handle::new(client, Arc::default()), face: Face::Blocking };
    let object = opened.into_pyobject(py)?.cast_into::<Client>()?.unbind();
    *known() = Some((process::generation(), object.clone_ref(py)));
    Ok(object)
}
