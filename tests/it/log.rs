//! The log of a process, for tests that run in a process of their own.

use std::{
    fmt::{Debug, Write as _},
    sync::Arc,
};

use parking_lot::Mutex;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// The text of the log events of this process.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<String>>);

impl Log {
    /// Starts to capture the events.
    ///
    /// # Panics
    /// When the process has a subscriber.
    pub(crate) fn capture() -> Log {
        let log = Log::default();
        tracing::subscriber::set_global_default(log.clone()).expect("the first of this process");
        log
    }

    /// Takes the text of the events so far.
    pub(crate) fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(self.0.lock(), "{field}={value:?}").expect("memory");
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("townsquare")
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}
