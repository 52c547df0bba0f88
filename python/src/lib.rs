//! townsquare for Python: the extension module `townsquare._native`, which the package `townsquare` re-exports.
//!
//! Invariant: this crate has no logic of its own. Each operation is one method that builds a future of the core; `run`
//! runs that future for `Client` and for `AsyncClient`.
//!
//! | module | what it holds |
//! |---|---|
//! | `errors` | failures as exceptions |
//! | `process` | signals, `fork` and interpreter shutdown |
//! | `log` | the library's log as records of `logging` |
//! | `client_share` | a core client shared by Python objects |
//! | `method` | a method's name and operation |
//! | `loop_waker`, `background`, `coroutine` | waking event loops, running work off them, the coroutine around that work |
//! | `run` | `run_sync` and `run_async` |
//! | `json`, `argument`, `rows` | arguments: JSON, single values, lists of new rows |
//! | `options` | keyword arguments of `open` |
//! | `record`, `area` | macros that declare record classes and areas |
//! | `callback`, `progress` | Python functions as callbacks, subscriptions, progress of transfers |
//! | `headers`, `http` | the headers of a request; responses, whole and streamed |
//! | `request_body`, `request_path` | the body of a request, from bytes, sources or a server; its path |
//! | `iteration` | iterators over long lists |
//! | `file_info`, `files`, `upload_options` | the record of a file, open files, options of an upload |
//! | `finding` | the record of a finding of `check` |
//! | `table_rows` | the iterators of an export of rows, and the records of exports and imports |
//! | `signed_file` | the functions for signed files |
//! | `change`, `change_stream` | the record of a change, subscriptions as iterators |
//! | `discovery`, `mini_app`, `mini_app_table`, `communities`, `spaces`, `fidgets`, `auth`, `storage`, `realtime` | the areas, each with its records |
//! | `client` | `Client`, `AsyncClient` and `shared` |
//! | `manual_clock` | the clock of tests |
//! | `web` | a request of `asgi` and `wsgi` |
//! | `command` | the command `townsquare` |

#![forbid(unsafe_code)]

/// The docstring of a class, a method or a function in the stubs; `build.rs` writes it to a file. The twins of asyncio have the
/// docstring of the blocking class.
macro_rules! text_of {
    ($item:ident $(. $method:ident)?) => {
        include_str!(concat!(env!("OUT_DIR"), "/", stringify!($item), $(".", stringify!($method),)? ".txt"))
    };
}

// In layer order: a module uses only those above it.
mod errors;

mod process;

mod log;
mod loop_waker;
mod method;

mod client_share;

mod background;
mod callback;
mod coroutine;
mod progress;
mod run;

mod area;
mod json;
mod record;
mod undelivered;

mod argument;
mod change;
mod change_stream;
mod file_info;
mod files;
mod finding;
mod headers;
mod http;
mod iteration;
mod options;
mod request_body;
mod request_path;
mod rows;
mod signed_file;
mod table_rows;
mod upload_options;

mod auth;
mod communities;
mod discovery;
mod fidgets;
mod mini_app;
mod mini_app_table;
mod realtime;
mod spaces;
mod storage;

mod client;

mod manual_clock;

mod web;

mod command;

/// The native part of the package `townsquare`. Programs import `townsquare`.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        auth::{AsyncAuth, Auth, ImportReport, Session, SessionInfo, User, identity_claim},
        callback::Subscription,
        change::{Change, RealtimeStats},
        change_stream::{AsyncChangeStream, AsyncLiveQuery, ChangeStream, LiveQuery},
        client::{AsyncClient, Client, MigrationPlan, MoveReport, PlannedMigration, shared},
        command::run_command,
        communities::{AsyncCommunities, Communities, CommunityConfig, CommunityDomain, SpaceRegistration},
        coroutine::Coroutine,
        discovery::{AsyncDiscovery, Discovery, DiscoveryStats, Facet},
        fidgets::{AsyncFidgets, Fidget, Fidgets},
        file_info::FileInfo,
        finding::Finding,
        http::{AsyncHttpStream, HttpResponse, HttpStream},
        manual_clock::{ManualClock, open_with_clock},
        mini_app::{Author, Engagement, Highlight, MiniApp, Suggestion},
        mini_app_table::mini_apps_stream,
        realtime::{AsyncRealtime, Realtime},
        request_body::RequestChunks,
        signed_file::{decrypt_file, encrypt_file, sign_file, verify_file},
        spaces::{AsyncSpaces, Owner, PublicSpace, Space, SpaceWithFidgets, Spaces},
        storage::{AsyncStorage, RepairReport, Storage},
        table_rows::{RowImportReport, RowProblem, TableRow},
        web::{WebRequest, request_handle},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        townsquare::threads::log_panics();
        #[cfg(debug_assertions)]
        module.add_function(wrap_pyfunction!(crate::errors::_panic, module)?)?;
        crate::process::register_hooks(module)?;
        crate::log::install(module)
    }
}
