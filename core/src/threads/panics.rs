//! Panics inside the C and the Python library: they go to the log instead of the terminal.

use std::{
    panic::{PanicHookInfo, set_hook},
    sync::Once,
    thread,
};

/// Replaces the panic hook of this copy of Rust's standard library by one that logs. For the C and Python bindings, each
/// of which contains its own copy; the host's Rust code has another one. A Rust host's hook stays as it is.
pub fn log_panics() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| set_hook(Box::new(log)));
}

/// Logs the place of a panic, and its message if that is a literal. A formatted message may contain a secret.
fn log(panic: &PanicHookInfo<'_>) {
    let message = panic.payload().downcast_ref::<&'static str>().copied().unwrap_or("with a formatted message");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = thread::current();
    tracing::error!(place, thread = thread.name().unwrap_or("unnamed"), "the library panicked: {message}");
}
