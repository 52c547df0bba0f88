//! Lists of mini apps: one page of a longer list, with the length of the whole.
//!
//! Invariant: a page of a prepared order shares the order's array by one reference count, so a list of 20 costs the same
//! as one of 1,000. The total of a filtered or searched list is counted when it is first read, because counting visits
//! every match.

use std::{
    fmt,
    ops::{Deref, Range},
    sync::{Arc, OnceLock},
};

use serde::{Serialize, Serializer};

use super::MiniApp;

/// A list of mini apps, best first: one page, and [`total`](MiniApps::total) for the number of apps without limit and
/// offset. Dereferences to a slice; a clone shares it.
///
/// ```
/// # fn example(apps: &townsquare::discovery::MiniApps) {
/// println!("{} of {} apps", apps.len(), apps.total());
/// for app in apps {
///     println!("{}", app.name());
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct MiniApps {
    all: Arc<[MiniApp]>,
    range: Range<usize>,
    total: Total,
}

#[derive(Clone)]
enum Total {
    Known(usize),
    /// Counted on the first read.
    Lazy(Arc<LazyTotal>),
}

struct LazyTotal {
    total: OnceLock<usize>,
    count: Box<dyn Fn() -> usize + Send + Sync>,
}

impl MiniApps {
    /// A page of an order, sharing its array.
    pub(crate) fn page(all: &Arc<[MiniApp]>, offset: usize, limit: usize) -> MiniApps {
        let start = offset.min(all.len());
        let end = start.saturating_add(limit).min(all.len());
        MiniApps { range: start..end, total: Total::Known(all.len()), all: Arc::clone(all) }
    }

    /// A page of a list with `total` apps in all.
    pub(crate) fn of_total(apps: impl IntoIterator<Item = MiniApp>, total: usize) -> MiniApps {
        MiniApps { total: Total::Known(total), ..MiniApps::from_iter(apps) }
    }

    /// A page of a longer list. `count` returns the number of apps in that list.
    pub(crate) fn counted_by(
        apps: impl IntoIterator<Item = MiniApp>,
        count: impl Fn() -> usize + Send + Sync + 'static,
    ) -> MiniApps {
        let total = Total::Lazy(Arc::new(LazyTotal { total: OnceLock::new(), count: Box::new(count) }));
        MiniApps { total, ..MiniApps::from_iter(apps) }
    }

    pub(crate) fn empty() -> MiniApps {
        MiniApps { all: Arc::default(), range: 0..0, total: Total::Known(0) }
    }

    /// How many apps the call would return without limit and offset.
    ///
    /// The first read of a filtered or searched list counts them and may take as long as the call; later reads take
    /// nothing. The list keeps its catalog in memory for that.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let games = client.discovery().get_mini_apps_by_category(["games"], 20)?;
    /// println!("{} pages", games.total().div_ceil(20));
    /// # Ok(())
    /// # }
    /// ```
    pub fn total(&self) -> usize {
        match &self.total {
            Total::Known(total) => *total,
            Total::Lazy(lazy) => *lazy.total.get_or_init(|| (lazy.count)()),
        }
    }
}

impl FromIterator<MiniApp> for MiniApps {
    fn from_iter<I: IntoIterator<Item = MiniApp>>(apps: I) -> MiniApps {
        let all: Arc<[MiniApp]> = apps.into_iter().collect();
        MiniApps { range: 0..all.len(), total: Total::Known(all.len()), all }
    }
}

impl Deref for MiniApps {
    type Target = [MiniApp];
    fn deref(&self) -> &[MiniApp] {
        &self.all[self.range.clone()]
    }
}

impl<'a> IntoIterator for &'a MiniApps {
    type Item = &'a MiniApp;
    type IntoIter = std::slice::Iter<'a, MiniApp>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for MiniApps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl Serialize for MiniApps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}
