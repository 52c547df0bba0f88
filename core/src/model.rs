//! The records of the library: plain values without behaviour beyond reading themselves.
//!
//! Invariant: nothing here does I/O, and a record never changes after it was handed out.

mod mini_app;

pub use mini_app::{Author, CatalogSource, DiscoveryStats, Engagement, MiniApp, MiniAppRecord, MiniApps, Timeframe};
