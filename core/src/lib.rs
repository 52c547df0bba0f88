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
//!     println!("{:>3}. {}", app.engagement().trending_rank.unwrap_or(0), app.name);
//! }
//! for app in &apps.search_mini_apps("chess", 10)? {
//!     println!("{} {}", app.name, app.home_url);
//! }
//! client.close();
//! # Ok::<(), townsquare::Error>(())
//! ```
//!
//! # Where to look
//! [`Client`] and its twin [`blocking::Client`] are the door, [`Config`] says how it opens, [`Error`] what went wrong.
//! [`Discovery`] finds mini apps; [`Spaces`], [`Fidgets`] and [`Communities`] are the tables. Operations, defaults and messages keep the words of the specification (`SPEC`).
//!
//! # Threads
//! Everything is `Send + Sync`. Futures need no runtime of yours: a client has a small one for its background work,
//! and reads that memory or SQLite can answer run where you call them.
#![forbid(unsafe_code)]

// In layer order: a module uses only those above it (tests/it/tidy checks).
mod clock;
mod error;
mod model;

mod config;
mod filter;
mod policy;
mod signed;

mod database;
mod dispatch;
mod upstream;

mod auth;
mod communities;
mod discovery;
mod spaces;

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
    auth::{Auth, identity_claim},
    client::Client,
    clock::{Clock, ManualClock},
    communities::Communities,
    config::{Config, Durability, OPTIONS},
    discovery::{CATEGORIES, Discovery, ENDPOINT_PATH, HttpResponse, Selection},
    dispatch::Subscription,
    error::{DATABASE_ERRORS, Error, ErrorKind, Operation, Result},
    filter::MAX_LIMIT,
    model::{
        ActiveCommunityConfig, AuthEvent, Author, CatalogSource, Change, CommunityConfig, CommunityDomain,
        CommunityPatch, DiscoveryStats, DomainType, Engagement, Fidget, FidgetPatch, MiniApp, MiniAppRecord, MiniApps,
        NewFidget, NewRegistration, NewSpace, Owner, PublicSpace, Session, Space, SpacePatch, SpaceRegistration,
        SpaceType, SpaceWithFidgets, Timeframe, User, UserPatch,
    },
    spaces::{DEFAULT_PAGE, Fidgets, Spaces},
};
