//! `Client`, `AsyncClient` and `shared`: opening, closing and the areas.
//!
//! Invariant: the methods are written once, in one base class. `Client` and `AsyncClient` differ in the mode of their
//! runner only.

use std::{
    future::{Future, poll_fn},
    path::PathBuf,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
};

use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyDictMethods, PyTuple, PyType},
};
use townsquare::{Config, MoveOptions, Operation, check::CheckDepth, rows::ImportOptions};

use crate::{
    argument::{FlagArg, PathArg, SecondsArg, TextArg, TextListArg},
    auth,
    callback::Callback,
    client_share::ProcessClient,
    communities, discovery,
    errors::Failure,
    fidgets,
    finding::Finding,
    headers::HeadersArg,
    json::OwnedJson,
    log,
    loop_waker::LoopWaker,
    options::{configuration, configuration_of},
    process, realtime,
    record::record,
    request_body::{BodyArg, Handler, answer_request},
    rows::{RowArg, RowsArg},
    run::{MethodResult, Mode, NoValue, Runner, run_on_own_thread},
    spaces, storage,
    table_rows::{self, RowImportReport},
};

#[doc = text_of!(Client)]
#[pyclass(name = "Client", frozen, subclass, module = "townsquare._native")]
pub(crate) struct Methods {
    runner: Runner,
    discovery: PyOnceLock<Py<PyAny>>,
    communities: PyOnceLock<Py<PyAny>>,
    spaces: PyOnceLock<Py<PyAny>>,
    fidgets: PyOnceLock<Py<PyAny>>,
    storage: PyOnceLock<Py<PyAny>>,
    realtime: PyOnceLock<Py<PyAny>>,
    auth: PyOnceLock<Py<PyAny>>,
}

impl Methods {
    pub(crate) fn runner(&self) -> &Runner {
        &self.runner
    }
}

impl From<Runner> for Methods {
    fn from(runner: Runner) -> Methods {
        let area = PyOnceLock::new;
        Methods {
            runner,
            discovery: area(),
            communities: area(),
            spaces: area(),
            fidgets: area(),
            storage: area(),
            realtime: area(),
            auth: area(),
        }
    }
}

/// Opens a client, or returns a coroutine of it.
pub(crate) fn open(py: Python<'_>, mode: Mode, config: Config) -> MethodResult<'_> {
    log::start(py)?;
    let waker = Arc::new(LoopWaker::default());
    let of_client = Arc::clone(&waker);
    run_on_own_thread(py, mode, Operation::Open, &waker, async move {
        Ok(NewClient { client: ProcessClient::new(townsquare::Client::open(config).await?, of_client), mode })
    })
}

#[doc = text_of!(Client)]
#[pyclass(frozen, extends = Methods, module = "townsquare")]
pub(crate) struct Client;

#[doc = text_of!(AsyncClient)]
#[pyclass(frozen, extends = Methods, module = "townsquare")]
pub(crate) struct AsyncClient;

#[pymethods]
impl Methods {
    #[doc = text_of!(Client.open)]
    #[classmethod]
    #[pyo3(signature = (data_dir = None, **options), text_signature = "(data_dir=None, *, database_url=None, storage_url=None, catalog_url=None, catalog_api_key=None, refresh_interval=900, catalog_timeout=10, durability='full', persist_session=False, expose_owner_email='always', adopt=False, migrate=True, connect_timeout=2, operation_timeout=30, max_connections=16, database_pooler='auto', event_heartbeat=15, inline_file_limit=None, max_file_size=52428800, buckets=None, identity_audience=None, change_retention=None, change_retention_rows=None, change_retention_bytes=None, max_owner_bytes=None, max_owner_files=None, max_owner_spaces=None, url_signing_key=None, busy_timeout=10, idle_timeout=600, max_lifetime=1800, catalog_key_header='x-api-key', catalog_refresh_timeout=30, catalog_page_size=100, catalog_max_pages=100, catalog_max_page_bytes=33554432, catalog_tries=3, catalog_max_lists=20, catalog_format='neynar', max_staleness=None, endpoint_refresh=True, endpoint_refresh_age=60, endpoint_lists=False, endpoint_origins='', max_text_size=1048576, max_name_size=1024, max_json_size=262144, max_bulk_rows=10000, sign_up_limit=0, claim_store=False, max_verified_size=1048576, max_space_fidgets=1000, database_replica_url=None, database_replica_wait=1, database_replica_max_lag=10)")]
    fn open<'py>(
        class: &Bound<'py, PyType>,
        data_dir: Option<PathArg>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> MethodResult<'py> {
        let py = class.py();
        let mode = if class.is(py.get_type::<AsyncClient>()) { Mode::Async } else { Mode::Sync };
        let config = configuration(py, data_dir.map(|PathArg(folder)| folder), options)?;
        let opening = open(py, mode, config)?;
        match mode {
            Mode::Sync => Ok(opening),
            Mode::Async => py.import("townsquare._opening")?.getattr("AsyncClientOpening")?.call1((opening,)),
        }
    }

    #[doc = text_of!(Client.close)]
    fn close<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        if process::is_library_thread() {
            return self.close_from_callback(py);
        }
        let share = self.runner.client();
        let client = share.for_future();
        run_on_own_thread(py, self.runner.mode(), "close", share.waker(), async move {
            // In a child process the client is the parent's, which closes it.
            if let Ok(client) = client.get() {
                client.close().await;
            }
            Ok(NoValue)
        })
    }

    #[doc = text_of!(Client.closed)]
    #[getter]
    fn closed(&self) -> bool {
        self.runner.client().get().map_or(true, townsquare::Client::is_closed)
    }

    #[doc = text_of!(Client.discovery)]
    #[getter]
    fn discovery<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        Ok(self.discovery.get_or_try_init(py, || discovery::area(py, self.runner.clone()))?.bind(py))
    }

    #[doc = text_of!(Client.communities)]
    #[getter]
    fn communities<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        Ok(self.communities.get_or_try_init(py, || communities::area(py, self.runner.clone()))?.bind(py))
    }

    #[doc = text_of!(Client.spaces)]
    #[getter]
    fn spaces<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        Ok(self.spaces.get_or_try_init(py, || spaces::area(py, self.runner.clone()))?.bind(py))
    }

    #[doc = text_of!(Client.fidgets)]
    #[getter]
    fn fidgets<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        Ok(self.fidgets.get_or_try_init(py, || fidgets::area(py, self.runner.clone()))?.bind(py))
    }

    #[doc = text_of!(Client.storage)]
    #[getter]
    fn storage<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        Ok(self.storage.get_or_try_init(py, || storage::area(py, self.runner.clone()))?.bind(py))
    }

    #[doc = text_of!(Client.realtime)]
    #[getter]
    fn realtime<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        Ok(self.realtime.get_or_try_init(py, || realtime::area(py, self.runner.clone()))?.bind(py))
    }

    #[doc = text_of!(Client.auth)]
    #[getter]
    fn auth<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        Ok(self.auth.get_or_try_init(py, || auth::area(py, self.runner.clone()))?.bind(py))
    }

    #[doc = text_of!(Client.as_service)]
    fn as_service<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.another_handle(py, "as_service", |client| Ok(client.as_service()))
    }

    #[doc = text_of!(Client.as_anonymous)]
    fn as_anonymous<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.another_handle(py, "as_anonymous", |client| Ok(client.as_anonymous()))
    }

    #[doc = text_of!(Client.with_client_key)]
    fn with_client_key<'py>(&self, py: Python<'py>, client_key: TextArg) -> MethodResult<'py> {
        self.another_handle(py, "with_client_key", move |client| {
            Ok(client.with_client_key(&client_key.value("client_key")?))
        })
    }

    #[doc = text_of!(Client.read_position)]
    fn read_position<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run(py, Operation::ReadPosition, |client| async move { Ok(client.get()?.read_position().await?) })
    }

    #[doc = text_of!(Client.read_after)]
    fn read_after<'py>(&self, py: Python<'py>, position: TextArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::ReadAfter, move |client| async move {
            Ok(client.get()?.read_after(&position.value("position")?).await?)
        })
    }

    #[doc = text_of!(Client.as_user)]
    fn as_user<'py>(&self, py: Python<'py>, access_token: TextArg) -> MethodResult<'py> {
        let mode = self.runner.mode();
        self.runner.run(py, Operation::AsUser, move |client| async move {
            let user = client.get()?.as_user(&access_token.value("access_token")?).await?;
            Ok(NewClient { client: ProcessClient::new(user, Arc::clone(client.waker())), mode })
        })
    }

    #[doc = text_of!(Client.handle_request)]
    #[pyo3(signature = (method, target, body = BodyArg::EMPTY, headers = None))]
    #[pyo3(text_signature = "($self, method, target, body=b'', headers=None)")]
    fn handle_request<'py>(
        this: &Bound<'py, Self>,
        method: TextArg,
        target: TextArg,
        body: BodyArg,
        headers: Option<HeadersArg>,
    ) -> MethodResult<'py> {
        let request = (method, target, headers);
        answer_request(this.as_any(), &this.get().runner, Handler::Request, request, body)
    }

    #[doc = text_of!(Client.check)]
    #[pyo3(signature = (*, full = FlagArg(false)), text_signature = "($self, *, full=False)")]
    fn check<'py>(&self, py: Python<'py>, full: FlagArg) -> MethodResult<'py> {
        let depth = if full.0 { CheckDepth::Full } else { CheckDepth::Quick };
        self.runner.run_detached(py, Operation::Check, move |client| async move {
            let findings = client.get()?.check(depth).await?;
            Ok(findings.into_iter().map(Finding::from).collect::<Vec<_>>())
        })
    }

    #[doc = text_of!(Client.backup)]
    fn backup<'py>(&self, py: Python<'py>, target: PathArg) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::Backup, |client| async move {
            client.get()?.backup(target.0).await?;
            Ok(NoValue)
        })
    }

    #[doc = text_of!(Client.metrics)]
    fn metrics<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::Metrics, |client| async move {
            Ok(OwnedJson(client.get()?.metrics().await?.to_json()))
        })
    }

    #[doc = text_of!(Client.metrics_text)]
    fn metrics_text<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::Metrics, |client| async move {
            Ok(client.get()?.metrics().await?.to_prometheus())
        })
    }

    #[doc = text_of!(Client.move_to)]
    #[pyo3(
        signature = (*, data_dir = None, sessions = FlagArg(true), follow = None, progress = None, **options),
        text_signature = "($self, /, *, data_dir=None, sessions=True, follow=None, progress=None, **options)"
    )]
    fn move_to<'py>(
        &self,
        py: Python<'py>,
        data_dir: Option<PathArg>,
        sessions: FlagArg,
        follow: Option<SecondsArg>,
        progress: Option<Callback>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> MethodResult<'py> {
        let target = configuration_of(py, Operation::MoveTo, data_dir.map(|PathArg(folder)| folder), options)?;
        let longest_pause = follow.map(|longest| longest.value("follow")).transpose();
        self.runner.run_transfer(py, Operation::MoveTo, progress, move |client, progress| async move {
            let report = |done, total| progress.report(done, total);
            let mut what = MoveOptions::new().sessions(sessions.0);
            if let Some(longest_pause) = longest_pause? {
                what = what.follow(longest_pause);
            }
            Ok(MoveReport::from(client.get()?.move_to(target, what, report).await?))
        })
    }

    #[doc = text_of!(Client.reopen_for_writes)]
    fn reopen_for_writes<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run_detached(py, Operation::ReopenForWrites, |client| async move {
            Ok(client.get()?.reopen_for_writes().await?)
        })
    }

    #[doc = text_of!(Client.check_move)]
    #[pyo3(signature = (*, data_dir = None, **options), text_signature = "($self, /, *, data_dir=None, **options)")]
    fn check_move<'py>(
        &self,
        py: Python<'py>,
        data_dir: Option<PathArg>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> MethodResult<'py> {
        let target = configuration_of(py, Operation::MoveTo, data_dir.map(|PathArg(folder)| folder), options)?;
        self.runner.run_detached(py, Operation::MoveTo, |client| async move {
            Ok(client.get()?.check_move(target).await?.as_str())
        })
    }

    #[doc = text_of!(Client.export_rows)]
    #[pyo3(signature = (tables = TextListArg::EMPTY), text_signature = "($self, tables=())")]
    fn export_rows<'py>(&self, py: Python<'py>, tables: TextListArg) -> MethodResult<'py> {
        table_rows::export_rows(py, &self.runner, tables)
    }

    #[doc = text_of!(Client.import_rows)]
    #[pyo3(signature = (table, rows, *, dry_run = FlagArg(false)))]
    #[pyo3(text_signature = "($self, table, rows, *, dry_run=False)")]
    fn import_rows<'py>(
        &self,
        py: Python<'py>,
        table: TextArg,
        rows: RowsArg<'py>,
        dry_run: FlagArg,
    ) -> MethodResult<'py> {
        let rows = rows.read(self.runner.client(), "rows", RowArg::take_all)?;
        let options = if dry_run.0 { ImportOptions::new().dry_run() } else { ImportOptions::new() };
        self.runner.run_detached(py, Operation::ImportRows, |client| async move {
            let table = table.value("table")?;
            Ok(RowImportReport::from(client.get()?.import_rows(&table, rows?, options).await?))
        })
    }

    fn __repr__(&self) -> String {
        let class = match self.runner.mode() {
            Mode::Sync => "Client",
            Mode::Async => "AsyncClient",
        };
        format!("<townsquare.{class} {}>", if self.closed() { "closed" } else { "open" })
    }
}

impl Methods {
    /// Makes another handle of the client, which must be open.
    fn another_handle<'py>(
        &self,
        py: Python<'py>,
        method: &'static str,
        make: impl FnOnce(&townsquare::Client) -> Result<townsquare::Client, Failure> + Send + 'static,
    ) -> MethodResult<'py> {
        let mode = self.runner.mode();
        self.runner.run(py, method, move |client| async move {
            require_open(&client)?;
            let handle = make(client.get()?)?;
            Ok(NewClient { client: ProcessClient::new(handle, Arc::clone(client.waker())), mode })
        })
    }

    /// Starts to close the client and returns at once. Closing waits for callbacks, and this call comes from a
    /// callback.
    fn close_from_callback<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run(py, "close", |client| async move {
            if let Ok(client) = client.get() {
                let mut closing = pin!(client.close());
                // The first poll starts the closing, which then completes without further polls.
                poll_fn(|context| {
                    let _ = closing.as_mut().poll(context);
                    Poll::Ready(())
                })
                .await;
            }
            Ok(NoValue)
        })
    }
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (*_arguments, **_options), text_signature = "(call_Client_open, /)")]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyClassInitializer<Client>> {
        Err(PyTypeError::new_err("a client is opened by Client.open(data_dir, ...), not by Client(...)"))
    }

    #[doc = text_of!(Client.restore)]
    #[staticmethod]
    fn restore(py: Python<'_>, source: PathArg, data_dir: PathArg) -> MethodResult<'_> {
        restore(py, Mode::Sync, source.0, data_dir.0)
    }

    #[doc = text_of!(Client.plan_migrations)]
    #[staticmethod]
    #[pyo3(signature = (data_dir = None, **options))]
    fn plan_migrations<'py>(
        py: Python<'py>,
        data_dir: Option<PathArg>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> MethodResult<'py> {
        plan_migrations(py, Mode::Sync, data_dir, options)
    }

    fn __enter__(this: &Bound<'_, Self>) -> PyResult<Py<Self>> {
        let opened = require_open(this.as_super().get().runner.client());
        opened.map_err(|failure| failure.into_exception(this.py(), None))?;
        Ok(this.clone().unbind())
    }

    #[pyo3(signature = (*exc))]
    fn __exit__(this: &Bound<'_, Self>, exc: &Bound<'_, PyTuple>) -> PyResult<()> {
        let _ = exc;
        this.as_super().get().close(this.py()).map(drop)
    }
}

#[pymethods]
impl AsyncClient {
    #[new]
    #[pyo3(signature = (*_arguments, **_options), text_signature = "(call_AsyncClient_open, /)")]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyClassInitializer<AsyncClient>> {
        Err(PyTypeError::new_err(
            "a client is opened by `async with AsyncClient.open(data_dir, ...)`, not by AsyncClient(...)",
        ))
    }

    #[doc = text_of!(Client.restore)]
    #[staticmethod]
    fn restore(py: Python<'_>, source: PathArg, data_dir: PathArg) -> MethodResult<'_> {
        restore(py, Mode::Async, source.0, data_dir.0)
    }

    #[doc = text_of!(Client.plan_migrations)]
    #[staticmethod]
    #[pyo3(signature = (data_dir = None, **options))]
    fn plan_migrations<'py>(
        py: Python<'py>,
        data_dir: Option<PathArg>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> MethodResult<'py> {
        plan_migrations(py, Mode::Async, data_dir, options)
    }

    fn __aenter__<'py>(this: &Bound<'py, Self>) -> MethodResult<'py> {
        let itself = this.clone().unbind();
        this.as_super().get().runner.run(this.py(), "__aenter__", |client| async move {
            require_open(&client)?;
            Ok(itself)
        })
    }

    #[pyo3(signature = (*exc))]
    fn __aexit__<'py>(this: &Bound<'py, Self>, exc: &Bound<'py, PyTuple>) -> MethodResult<'py> {
        let _ = exc;
        this.as_super().get().close(this.py())
    }
}

/// # Errors
/// `Closed` for a client or a handle that was closed, and in a forked process.
fn require_open(client: &ProcessClient) -> Result<(), Failure> {
    Ok(client.get()?.require_open()?)
}

fn restore(py: Python<'_>, mode: Mode, source: PathBuf, data_dir: PathBuf) -> MethodResult<'_> {
    log::start(py)?;
    run_on_own_thread(py, mode, Operation::Restore, &Arc::default(), async move {
        townsquare::Client::restore(source, data_dir)?;
        Ok(NoValue)
    })
}

fn plan_migrations<'py>(
    py: Python<'py>,
    mode: Mode,
    data_dir: Option<PathArg>,
    options: Option<&Bound<'py, PyDict>>,
) -> MethodResult<'py> {
    let config = configuration(py, data_dir.map(|PathArg(folder)| folder), options)?;
    log::start(py)?;
    run_on_own_thread(py, mode, Operation::Open, &Arc::default(), async move {
        Ok(MigrationPlan::from(townsquare::Client::plan_migrations(config).await?))
    })
}

record! {
    #[doc = text_of!(MigrationPlan)]
    MigrationPlan(townsquare::MigrationPlan) [] as plan, hash [is_new, is_current] => {
        /// Every migration that this version of the library knows, in the order in which they are applied.
        migrations: "list[PlannedMigration]" =
            plan.migrations.iter().cloned().map(PlannedMigration::from).collect::<Vec<_>>(),
        /// Whether there is no database yet, or one without the tables of the library.
        is_new: "bool" = plan.is_new,
        /// Whether `Client.open` changes nothing.
        is_current: "bool" = plan.is_current,
    }
}

record! {
    #[doc = text_of!(PlannedMigration)]
    PlannedMigration(townsquare::PlannedMigration) [] as migration, hash [name] => {
        /// The name, such as `0005_files`.
        name: "str" = migration.name,
        /// What the migration does.
        about: "str" = migration.about,
        /// Whether the database has it.
        is_applied: "bool" = migration.is_applied,
    }
}

record! {
    #[doc = text_of!(MoveReport)]
    MoveReport(townsquare::MoveReport) [] as report,
    hash [files, bytes, seconds, resumed] => {
        /// The number of rows by table.
        rows: "dict[str, int]" = &report.rows,
        /// The number of files.
        files: "int" = report.files,
        /// The bytes of the files.
        bytes: "int" = report.bytes,
        /// How long the call took, in seconds.
        seconds: "float" = report.seconds,
        /// Whether the call continued a move that an earlier call had begun.
        resumed: "bool" = report.resumed,
    }
}

/// A core client that becomes an object of its mode's class.
pub(crate) struct NewClient {
    pub(crate) client: ProcessClient,
    pub(crate) mode: Mode,
}

impl<'py> IntoPyObject<'py> for NewClient {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> MethodResult<'py> {
        let methods = PyClassInitializer::from(Methods::from(Runner::new(self.client, self.mode)));
        Ok(match self.mode {
            Mode::Sync => Bound::new(py, methods.add_subclass(Client))?.into_any(),
            Mode::Async => Bound::new(py, methods.add_subclass(AsyncClient))?.into_any(),
        })
    }
}

/// The object that `shared` returned last.
static SHARED: Mutex<Option<Py<Client>>> = Mutex::new(None);

#[doc = text_of!(shared)]
#[pyfunction]
#[pyo3(signature = (data_dir = None, **options))]
pub(crate) fn shared(
    py: Python<'_>,
    data_dir: Option<PathArg>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<Client>> {
    let cached = || SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let has_no_arguments = data_dir.is_none() && options.is_none_or(PyDictMethods::is_empty);
    let config = configuration(py, data_dir.map(|PathArg(folder)| folder), options)?;
    log::start(py)?;
    let client = process::block_on(py, async move {
        if has_no_arguments {
            townsquare::Client::shared().await
        } else {
            townsquare::Client::shared_with(config).await
        }
    });
    let exception = |error| Failure::from(error).into_exception(py, Some(Operation::Open));
    let client = client?.map_err(exception)?;
    if let Some(object) = &*cached()
        && !object.bind(py).as_super().get().closed()
    {
        return Ok(object.clone_ref(py));
    }
    let new = NewClient { client: ProcessClient::new(client, Arc::default()), mode: Mode::Sync };
    let object = new.into_pyobject(py)?.cast_into::<Client>()?.unbind();
    let before = cached().replace(object.clone_ref(py));
    // Under no lock: the drop releases the GIL, and another thread may wait for the lock with the GIL.
    drop(before);
    Ok(object)
}
