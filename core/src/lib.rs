//! townsquare: the community backend and mini app directory as a library.
//!
//! Link it and there is no server to run: mini app discovery from an upstream catalog, cached, searchable, with a
//! database fallback; and the tables of a community, with policies; on one SQLite file, or on PostgreSQL.
//!
//! ```no_run
//! use townsquare::{Config, Timeframe, blocking::Client};
//!
//! let client = Client::open(Config::new().data_dir("town").catalog_api_key("key"))?;
//! let apps = client.discovery();
//! for app in &apps.get_trending_mini_apps(Timeframe::Hours24, 20)? {
//!     println!("{:>3}. {}", app.engagement().trending_rank.unwrap_or(0), app.name());
//! }
//! for app in &apps.search_mini_apps("chess", 10)? {
//!     println!("{} {}", app.name(), app.home_url());
//! }
//! client.close();
//! # Ok::<(), townsquare::Error>(())
//! ```
//!
//! # Where to look
//! [`Client`] and its twin [`blocking::Client`] are the door, [`Config`] says how it opens, [`Error`] what went wrong.
//! [`Discovery`] finds mini apps; [`Spaces`], [`Fidgets`] and [`Communities`] are the tables, [`Auth`] lets people in. Operations, defaults and messages keep the words of the specification (`SPEC`).
//!
//! # Threads
//! Everything is `Send + Sync`. Futures need no runtime of yours: a client has a small one for its background work,
//! and reads that memory or SQLite can answer run where you call them.
#![forbid(unsafe_code)]

// In layer order: a module uses only those above it (tests/it/tidy checks).
#[allow(clippy::disallowed_methods, reason = "the only module that reads the time")]
mod clock;
mod error;
mod large_buffer;
mod model;

mod catalog;
#[allow(clippy::disallowed_methods, reason = "the only module that reads the environment")]
pub mod config;
mod policy;
mod signed_json;
mod validate;

mod callbacks;
mod catalog_thread;
mod database;
mod upstream;

pub mod auth;
pub mod communities;
pub mod discovery;
pub mod spaces;

mod client;
mod runtime;

pub mod blocking;
#[cfg(feature = "http")]
pub mod http;
mod shared;

pub use jiff::Timestamp;
pub use serde_json::Value as Json;
pub use uuid::Uuid;

pub use crate::{
    callbacks::Subscription,
    client::Client,
    config::Config,
    error::{Error, ErrorKind, Operation, Result},
};
// TRANSITION
pub use crate::{
    auth::{Auth, AuthEvent, Session, User, UserPatch, identity_claim},
    communities::{
        ActiveCommunityConfig, Communities, CommunityConfig, CommunityDomain, CommunityPatch, DomainType,
        NewRegistration, SpaceRegistration, SpaceType,
    },
    config::{Clock, Durability, ManualClock, OPTIONS},
    discovery::{
        Author, CATEGORIES, CatalogSource, Discovery, DiscoveryStats, ENDPOINT_PATH, Engagement, HttpResponse, MiniApp,
        MiniAppRecord, MiniApps, Selection, Texts, Timeframe,
    },
    error::DATABASE_ERRORS,
    model::Change,
    spaces::{
        DEFAULT_PAGE, Fidget, FidgetPatch, Fidgets, NewFidget, NewSpace, Owner, PublicSpace, Space, SpacePatch,
        SpaceWithFidgets, Spaces,
    },
    validate::MAX_LIMIT,
};
