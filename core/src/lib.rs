//! townsquare: the community backend and mini app directory as a library.
//!
//! A program links townsquare and opens a [`Client`]. The client provides:
//!
//! - a directory of mini apps: lists, categories and search over a catalog that is fetched from an upstream API and
//!   cached in memory;
//! - accounts, sessions and sign-in with e-mail address and password;
//! - the tables of a community: its configuration and domains, and the spaces of its users with their fidgets (widgets).
//!   Policies decide which rows a caller may see and change.
//!
//! There is no server to run. The data is in one SQLite file, or in a PostgreSQL database if
//! [`database_url`](Config::database_url) names one. With the [`data_dir`](Config::data_dir) `:memory:` nothing is on the disk.
//!
//! # Example
//!
//! This program creates an account and a public space, and lists the public spaces:
//!
//! ```no_run
//! use townsquare::{Config, blocking::Client, spaces::NewSpace};
//!
//! fn main() -> townsquare::Result<()> {
//!     // Creates the folder and the database if they do not exist.
//!     let client = Client::open(Config::new().data_dir("town"))?;
//!
//!     client.auth().sign_up("ann@town.example", "correct horse")?;
//!     client.auth().sign_in("ann@town.example", "correct horse")?;
//!     client.spaces().create_space(NewSpace::named("Harbor").public())?;
//!
//!     for public in client.spaces().get_public_spaces(20, 0)? {
//!         println!("{}", public.space.name);
//!     }
//!     client.close();
//!     Ok(())
//! }
//! ```
//!
//! Discovery needs a key of the upstream API, or a catalog file. `sample:` is a catalog of invented apps, for first steps and tests:
//!
//! ```no_run
//! use townsquare::{Config, blocking::Client, discovery::Timeframe};
//!
//! let client = Client::open(Config::new().data_dir(":memory:").catalog_url("sample:"))?;
//! for app in &client.discovery().get_trending_mini_apps(Timeframe::Hours24, 20)? {
//!     println!("{}: {}", app.name(), app.home_url());
//! }
//! # Ok::<(), townsquare::Error>(())
//! ```
//!
//! In the repository, `examples/tour.rs` shows every service, `examples/serve.rs` serves the directory page and the discovery
//! endpoint over HTTP, and `examples/torture.rs` is a crash test.
//!
//! # Where to look
//!
//! | to | use |
//! |---|---|
//! | open and close a client | [`Client`]; without async [`blocking::Client`] |
//! | set options in code, by URL or by environment variable | [`Config`], [`config::OPTIONS`] |
//! | list and search mini apps | [`Client::discovery`], module [`discovery`] |
//! | sign up, sign in, manage sessions | [`Client::auth`], module [`auth`] |
//! | read and change spaces and fidgets | [`Client::spaces`], [`Client::fidgets`], module [`spaces`] |
//! | read and write files | [`Client::storage`], module [`storage`] |
//! | follow changes of rows as they are committed | [`Client::realtime`], module [`realtime`] |
//! | read and change communities | [`Client::communities`], module [`communities`] |
//! | find out what is wrong | [`Client::check`], module [`check`] |
//! | write rows out as JSON, and read them in again | [`Client::export_rows`], [`Client::import_rows`], module [`rows`] |
//! | handle errors | [`Error`], module [`error`] |
//! | serve the directory, files and events over HTTP | module [`http`] |
//! | run PostgreSQL; know what is defended; look a finding up | modules [`postgres_guide`], [`security_guide`], [`check_guide`] |
//!
//! # Callers
//!
//! Every operation acts for a caller: anonymous, a user, or the service. A client starts anonymous and acts for a user
//! after [`sign_in`](auth::Auth::sign_in). A server with many users calls [`Client::as_user`] for each request. Trusted
//! code calls [`Client::as_service`], which no policy restricts. A row that the caller may not see answers like a missing
//! row: [`ErrorKind::NotFound`].
//!
//! # Threads and runtimes
//!
//! All types are `Send` and `Sync`. [`Client`] returns futures that run on any async runtime (tokio, smol), because the client
//! has a small tokio runtime of its own for background work. Reads from memory and short reads from SQLite run on the calling
//! thread; everything else runs on threads of the client. [`blocking::Client`] blocks the calling thread instead, and may
//! be used inside an async runtime. Callbacks of a [`Subscription`] run on separate threads, one call at a time for each
//! subscription. [`Client::close`] ends all these threads.
//!
//! A program may drop a future before it is ready. A read ends. A write whose transaction has begun is committed all the same, or
//! not at all, and never in part: repeat the call with an id of your own, or read the row. An upload that is dropped stores
//! the whole file or nothing: the client may be storing it already. A sign-in, and every other call that changes the session,
//! completes once it has begun; one that still waits, for the database or for an earlier call, may not happen.
//!
//! Later calls wait for what goes on after a drop. The next call that changes the session waits for a dropped sign-in. If a file is
//! larger than `inline_file_limit`, calls of the same caller on its path wait for a dropped upload, deletion, copy or move. A
//! smaller file, or a row, may still change shortly after the drop.
//!
//! On Unix the threads of a client block all signals, except the signals of a thread's own faults (`SIGSEGV` and the like). So a
//! signal goes to a thread of the program: one that waits with `sigwait` receives it, also if the program blocked the signal
//! after [`Client::open`]. A process or a thread that a callback starts inherits the mask of the callback's thread;
//! [`std::process::Command`] resets it for a process.
//!
//! If the system has too few threads, `open` fails with [`ErrorKind::Unavailable`], and so does a later operation that needs
//! a thread. The library leaves the panic hook of the program alone. A panic of a callback or inside the library does not
//! end the process: the hook reports it, and it becomes a log event or an error of the kind [`ErrorKind::Internal`].
//!
//! # Errors
//!
//! Every fallible operation returns [`Error`]. A program branches on [`Error::kind`]. The text of the error is a sentence
//! for people, with the operation as its prefix, and ends with the reason if there is one:
//! `Create space failed: Record already exists: spaces.id`. [`Error::explanation`] says what to do about it. A web server
//! answers with [`Error::status`]:
//!
//! | kind | status |
//! |---|---|
//! | `InvalidInput`, `FieldMissing` | 400; over HTTP, 416 for a range beyond a file |
//! | `Unauthorized` | 401 |
//! | `Forbidden` | 403 |
//! | `NotFound` | 404 |
//! | `AlreadyExists`, `ReferenceMissing`, `QuotaExceeded` | 409; 413 for a quota of bytes |
//! | `CursorExpired` | 410 |
//! | `Conflict` | 412 |
//! | `TooLarge` | 413 |
//! | `RateLimited` | 429 |
//! | `Unavailable`, `Closed` | 503; 504 and 507 for a store that does not answer and a full disk |
//! | `TableMissing`, `Config`, `Cancelled`, `Internal` | 500 |
//!
//! # Cargo features
//!
//! - `sqlite` (default): the embedded database.
//! - `postgres`: PostgreSQL, and adoption of its tables.
//! - `s3`: files in S3, Google Cloud Storage or Azure. Without it they are in a folder or in memory.
//! - `sample` (default): the catalog of invented apps, `catalog_url("sample:")`.
//! - `http`: for axum: routers for the endpoints, the extractor `Caller` for routes of the host, and errors as
//!   responses.
//! - `metrics`: calls are also counted by the recorder that the program has installed for the crate `metrics`. Without it,
//!   [`Client::metrics`] returns the same figures.
//!
//! A program takes only what it needs, and one database at least. A service on PostgreSQL and S3 without SQLite has
//! `default-features = false, features = ["postgres", "s3"]`. An option that needs a feature which the build leaves out fails with
//! [`ErrorKind::Config`], and the message names the feature. The libraries for C, C++ and Python have all of them.
#![forbid(unsafe_code)]
// docs.rs, which sets `docsrs`, names the feature of each item that needs one. Almost every item needs a database.
#![cfg_attr(docsrs, feature(doc_cfg), doc(auto_cfg(hide(feature = "sqlite", feature = "postgres"))))]
// The modules that need a database are absent without one. No error or warning follows the one that says so.
#![cfg_attr(not(any(feature = "sqlite", feature = "postgres")), allow(unused))]

#[cfg(not(any(feature = "sqlite", feature = "postgres")))]
compile_error!(
    "townsquare needs a database: enable the feature `sqlite` (the default) or `postgres`, or both, in Cargo.toml"
);

// Modules in layer order: a module uses only modules of earlier groups. A test (tidy::layers) checks this.

// Values and rules, without I/O.
#[allow(clippy::disallowed_methods, reason = "the only module that reads the time")]
mod clock;
pub mod error;
mod model;

mod catalog;
mod client_key;
#[allow(clippy::disallowed_methods, reason = "the only module that reads the environment")]
pub mod config;
pub mod metrics;
mod policy;
mod signed_file;
mod signed_json;
mod storage_path;
mod tls;
mod validate;

// One outside system each: the database, the object store, the upstream API, HTTP, and threads, also for callbacks.
mod callbacks;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod database;
mod file_place;
mod http_message;
mod objects;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod regular_file;
mod request_context;
#[doc(hidden)]
pub mod threads;
mod upstream;

// Services.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod auth;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod communities;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod discovery;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod realtime;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod spaces;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod storage;

// The check of the services and of the machine.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod check;

// Rows as data: export and import.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod rows;

// The client over the services, and its other forms.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod client;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod blocking;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod http;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod shared;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use crate::client::Client;
pub use jiff::Timestamp;
pub use serde_json::Value as Json;
pub use uuid::Uuid;

#[cfg(feature = "sqlite")]
#[doc(hidden)]
pub use crate::database::remove_named_files;
#[cfg(feature = "s3")]
#[doc(hidden)]
pub use crate::objects::{BackupDownload, BackupStore, BackupUpload};
pub use crate::{
    callbacks::Subscription,
    config::Config,
    error::{Error, ErrorKind, Operation, Result},
    model::{MigrationPlan, MoveOptions, MoveReport, MoveTarget, PlannedMigration},
};
#[cfg(feature = "postgres")]
pub use crate::{
    config::SupabaseProject,
    model::{SupabaseCheck, SupabaseReport, SupabaseSkipped},
};

#[doc = include_str!("postgres_guide.md")]
#[cfg(doc)]
pub mod postgres_guide {}

#[doc = include_str!("check_guide.md")]
#[cfg(doc)]
pub mod check_guide {}

#[doc = include_str!("security_guide.md")]
#[cfg(doc)]
pub mod security_guide {}

/// Compiles the Rust example of the README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}
