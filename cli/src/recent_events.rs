//! The last events of the log, for the bundle of `check`.
//!
//! Invariant: an event is kept as its time, its level and its place in the sources. Its text and its fields may name users, files
//! and hosts, and are not kept.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use jiff::Timestamp;
use serde_json::{Value, json};
use tracing::{Event, Subscriber};
use tracing_subscriber::{Layer, layer::Context};

/// The most events that are kept.
const MOST: usize = 200;

static EVENTS: Mutex<VecDeque<Value>> = Mutex::new(VecDeque::new());

/// Keeps the last events of the process.
pub(crate) struct RecentEvents;

impl<S: Subscriber> Layer<S> for RecentEvents {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let about = event.metadata();
        let mut events = EVENTS.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() == MOST {
            events.pop_front();
        }
        events.push_back(json!({
            "time": Timestamp::now().to_string(),
            "level": about.level().as_str(),
            "module": about.module_path(),
            "line": about.line(),
        }));
    }
}

/// The events, the oldest first.
pub(crate) fn recent_events() -> Vec<Value> {
    EVENTS.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}
