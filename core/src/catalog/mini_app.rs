//! Mini apps and lists of them, as discovery returns them (SPEC 2.1, UPSTREAM 2).
//!
//! Invariant: an app cloned out of a list shares only its own record.

mod author;
mod content;
mod endpoint_json;
mod list;
mod record;
mod texts;

use std::{fmt, num::NonZeroU32, ops::Deref};

use serde_json::Value;

pub(super) use self::content::{AuthorContent, RecordContent};
pub use self::{author::Author, list::MiniApps, record::MiniAppRecord, texts::Texts};

/// A mini app with its trending rank.
///
/// Dereferences to its [`MiniAppRecord`], and a clone shares that. Serializes as the endpoint's camelCase `App`.
///
/// ```
/// # fn example(app: &townsquare::discovery::MiniApp) {
/// println!("{} by {}", app.name(), app.author().map_or("unknown", |author| author.username));
/// # }
/// ```
#[derive(Clone, PartialEq)]
pub struct MiniApp {
    record: MiniAppRecord,
    trending_rank: Option<NonZeroU32>,
}

/// Popularity of a mini app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Engagement {
    /// Followers of the app's author.
    pub follower_count: u64,
    /// Rank in the trending order that the app was listed from, starting at 1; `None` if the app is not in that order.
    pub trending_rank: Option<u32>,
}

impl MiniApp {
    pub(crate) fn new(record: MiniAppRecord, trending_rank: Option<NonZeroU32>) -> MiniApp {
        MiniApp { record, trending_rank }
    }

    /// Follower count and trending rank.
    ///
    /// ```
    /// # fn example(app: &townsquare::discovery::MiniApp) {
    /// if let Some(rank) = app.engagement().trending_rank {
    ///     println!("{rank}. {}", app.name());
    /// }
    /// # }
    /// ```
    pub fn engagement(&self) -> Engagement {
        Engagement {
            follower_count: self.author().map_or(0, |author| author.follower_count),
            trending_rank: self.trending_rank.map(NonZeroU32::get),
        }
    }

    /// The app as the endpoint's camelCase `App` object.
    ///
    /// ```
    /// # fn example(app: &townsquare::discovery::MiniApp) {
    /// assert_eq!(app.to_json()["homeUrl"], app.home_url());
    /// # }
    /// ```
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }
}

impl Deref for MiniApp {
    type Target = MiniAppRecord;
    fn deref(&self) -> &MiniAppRecord {
        &self.record
    }
}

impl fmt::Debug for MiniApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MiniApp").field("trending_rank", &self.trending_rank).field("record", &self.record).finish()
    }
}
