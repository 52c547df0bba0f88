//! townsquare for Python: the extension module `townsquare._native`, which the package `townsquare` re-exports.
//!
//! Invariant: there is no logic here and no body twice. An operation is written once, as a method that names the core's
//! future; `enter` runs that future for `Client` and `AsyncClient` alike.
//!
//! | file | what it knows |
//! |---|---|
//! | `process` | what befalls the process: signals, fork, exit |
//! | `handle` | a client shared by Python objects, and how it may be dropped |
//! | `enter` | the two doors into the core, blocking and awaiting |
//! | `coroutine`, `courier` | what the awaiting door hands out, and how its answer reaches the event loop |
//! | `convert`, `json`, `errors`, `record` | values, failures and records on their way to Python |
//! | `argument` | ids, texts, changes and mappings on their way from it |
//! | `options` | keywords to configuration |
//! | `client` | the two clients, and the way to the areas |
//! | `listener` | callbacks on their way from Python, and what ends them |
//! | `discovery`, `communities`, `spaces`, `fidgets`, `auth` | one `area` each: names, defaults, meanings |
//! | `mini_app`, `community`, `space`, `fidget`, `user` | the records of each |

#![forbid(unsafe_code)]

mod area;
mod argument;
mod auth;
mod client;
mod communities;
mod community;
mod convert;
mod coroutine;
mod courier;
mod discovery;
mod enter;
mod errors;
mod fidget;
mod fidgets;
mod handle;
mod json;
mod listener;
mod mini_app;
mod options;
mod process;
mod record;
mod space;
mod spaces;
mod user;

/// The native half of `townsquare`; import that, not this.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        auth::{AsyncAuth, Auth, identity_claim},
        client::{AsyncClient, Client, shared},
        communities::{AsyncCommunities, Communities},
        community::{CommunityConfig, CommunityDomain, SpaceRegistration},
        coroutine::Coroutine,
        discovery::{AsyncDiscovery, Discovery, DiscoveryStats, HttpResponse},
        fidget::Fidget,
        fidgets::{AsyncFidgets, Fidgets},
        listener::Subscription,
        mini_app::{Author, Engagement, MiniApp},
        space::{Owner, PublicSpace, Space, SpaceWithFidgets},
        spaces::{AsyncSpaces, Spaces},
        user::{Session, User},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::process::watch(module)
    }
}
