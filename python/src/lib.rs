//! townsquare for Python: the extension module `townsquare._native`, which the package `townsquare` re-exports.
//!
//! Invariant: there is no logic here and no body twice. An operation is written once, as a method that names the core's
//! future; [`enter`] runs that future for `Client` and `AsyncClient` alike.
//!
//! | file | what it knows |
//! |---|---|
//! | [`process`] | what befalls the process: signals, fork, exit |
//! | [`handle`] | a client shared by Python objects, and how it may be dropped |
//! | [`enter`] | the two doors into the core, blocking and awaiting |
//! | [`coroutine`], [`courier`] | what the awaiting door hands out, and how its answer reaches the event loop |
//! | [`convert`], [`errors`], [`record`] | values, failures and records on their way to Python |
//! | [`options`] | keywords to configuration |
//! | [`client`], [`discovery`], [`mini_app`] | one area each: names, defaults, meanings |

#![forbid(unsafe_code)]

mod client;
mod convert;
mod coroutine;
mod courier;
mod discovery;
mod enter;
mod errors;
mod handle;
mod mini_app;
mod options;
mod process;
mod record;

/// The native half of `townsquare`; import that, not this.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        client::{AsyncClient, Client, shared},
        coroutine::Coroutine,
        discovery::{AsyncDiscovery, Discovery, DiscoveryStats, HttpResponse},
        mini_app::{Author, Engagement, MiniApp},
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::process::watch(module)
    }
}
