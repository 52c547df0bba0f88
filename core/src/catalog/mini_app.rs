//! Mini apps as the directory hands them out: shared records, cheap to list, complete (SPEC 2.1, UPSTREAM 2).
//!
//! Invariant: a list borrows the catalog it came from by one reference count, so a list of 20 costs what a list of
//! 1,000 does; and a single app taken out of a list keeps only itself alive.

mod fields;
mod packed;
mod record;

use std::{borrow::Cow, fmt, num::NonZeroU32, ops::Deref, ops::Range, str::FromStr, sync::Arc};

use jiff::Timestamp;
use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::Value;

use crate::error::Error;

pub(crate) use self::fields::{Fields, Publisher};
pub use self::record::{Author, MiniAppRecord, Texts};

/// One mini app of the catalog, with its place in the order it was listed in.
///
/// Dereferences to its [`MiniAppRecord`]. A clone shares the record. Serialises as the endpoint's camelCase `App`
/// (UPSTREAM 2).
#[derive(Clone, PartialEq)]
pub struct MiniApp {
    record: MiniAppRecord,
    trending_rank: Option<NonZeroU32>,
}

/// How an app is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Engagement {
    /// Followers of the app's author.
    pub follower_count: u64,
    /// Place in the trending order this app was listed from, counted from 1; `None` when that order has it not.
    pub trending_rank: Option<u32>,
}

impl MiniApp {
    pub(crate) fn new(record: MiniAppRecord, trending_rank: Option<NonZeroU32>) -> MiniApp {
        MiniApp { record, trending_rank }
    }

    /// Followers and trending rank.
    pub fn engagement(&self) -> Engagement {
        Engagement {
            follower_count: self.author().map_or(0, |author| author.follower_count),
            trending_rank: self.trending_rank.map(NonZeroU32::get),
        }
    }

    /// The endpoint's JSON shape, camelCase (UPSTREAM 2).
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

impl Serialize for MiniApp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct EngagementJson {
            follower_count: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            trending_rank: Option<u32>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata<'a> {
            version: &'a str,
            screenshots: &'a [Cow<'a, str>],
            #[serde(skip_serializing_if = "Option::is_none")]
            button_title: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            hero_image: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            tagline: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            subtitle: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            image: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            splash_image: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            splash_background_color: Option<&'a str>,
        }
        let fields = Fields::from(&self.record);
        let Engagement { follower_count, trending_rank } = self.engagement();
        let mut app = serializer.serialize_struct("App", 13)?;
        app.serialize_field("id", &fields.id)?;
        app.serialize_field("domain", &fields.domain)?;
        app.serialize_field("name", &fields.name)?;
        optional(&mut app, "description", fields.description.as_ref())?;
        app.serialize_field("iconUrl", &fields.icon_url)?;
        app.serialize_field("homeUrl", &fields.home_url)?;
        optional(&mut app, "category", fields.category.as_ref())?;
        app.serialize_field("networks", &fields.networks)?;
        app.serialize_field("tags", &fields.tags)?;
        optional(&mut app, "author", fields.author.as_ref())?;
        app.serialize_field("engagement", &EngagementJson { follower_count, trending_rank })?;
        app.serialize_field(
            "metadata",
            &Metadata {
                version: &fields.version,
                screenshots: &fields.screenshots,
                button_title: fields.button_title.as_deref(),
                hero_image: fields.hero_image_url.as_deref(),
                tagline: fields.tagline.as_deref(),
                subtitle: fields.subtitle.as_deref(),
                image: fields.image_url.as_deref(),
                splash_image: fields.splash_image_url.as_deref(),
                splash_background_color: fields.splash_background_color.as_deref(),
            },
        )?;
        app.serialize_field("lastFetched", &fields.last_fetched)?;
        app.end()
    }
}

/// Writes a field that is left out when there is nothing to say.
fn optional<S: SerializeStruct>(
    out: &mut S,
    name: &'static str,
    value: Option<&impl Serialize>,
) -> Result<(), S::Error> {
    match value {
        Some(value) => out.serialize_field(name, value),
        None => out.skip_field(name),
    }
}

/// A list of mini apps, best first; dereferences to a slice.
#[derive(Clone)]
pub struct MiniApps {
    all: Arc<[MiniApp]>,
    range: Range<usize>,
}

impl MiniApps {
    /// The first `limit` of an order, without copying it.
    pub(crate) fn first(all: &Arc<[MiniApp]>, limit: usize) -> MiniApps {
        MiniApps { range: 0..limit.min(all.len()), all: Arc::clone(all) }
    }

    pub(crate) fn empty() -> MiniApps {
        MiniApps { all: Arc::default(), range: 0..0 }
    }
}

impl FromIterator<MiniApp> for MiniApps {
    fn from_iter<I: IntoIterator<Item = MiniApp>>(apps: I) -> MiniApps {
        let all: Arc<[MiniApp]> = apps.into_iter().collect();
        MiniApps { range: 0..all.len(), all }
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

/// The window that a trending order looks at (UPSTREAM 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Timeframe {
    /// `1h`
    Hour1,
    /// `6h`
    Hours6,
    /// `12h`
    Hours12,
    /// `24h`: the default, and the order of category lists and of ties in search.
    #[default]
    Hours24,
    /// `7d`
    Days7,
}

impl Timeframe {
    /// All five, shortest first.
    pub const ALL: [Timeframe; 5] =
        [Timeframe::Hour1, Timeframe::Hours6, Timeframe::Hours12, Timeframe::Hours24, Timeframe::Days7];

    /// Upstream's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Timeframe::Hour1 => "1h",
            Timeframe::Hours6 => "6h",
            Timeframe::Hours12 => "12h",
            Timeframe::Hours24 => "24h",
            Timeframe::Days7 => "7d",
        }
    }
}

impl fmt::Display for Timeframe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Timeframe {
    type Err = Error;

    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for anything but the five.
    fn from_str(text: &str) -> Result<Timeframe, Error> {
        Timeframe::ALL.into_iter().find(|timeframe| timeframe.as_str() == text).ok_or_else(|| {
            let shown: String = text.chars().take(20).collect();
            Error::invalid_input(format!("Unknown timeframe {shown:?}: it is one of 1h, 6h, 12h, 24h, 7d"))
        })
    }
}

/// Where the catalog in memory was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogSource {
    /// The upstream API.
    Upstream,
    /// A `file:` catalog.
    File,
    /// The database: another process fetched it, or upstream failed.
    Database,
    /// There is no catalog.
    None,
}

impl CatalogSource {
    /// `upstream`, `file`, `database` or `none`.
    pub const fn as_str(self) -> &'static str {
        match self {
            CatalogSource::Upstream => "upstream",
            CatalogSource::File => "file",
            CatalogSource::Database => "database",
            CatalogSource::None => "none",
        }
    }
}

/// The state of the catalog: what it holds, how old it is, and why it is no newer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DiscoveryStats {
    /// Apps of the catalog.
    pub total: usize,
    /// Rows received when it was fetched.
    pub received: usize,
    /// Rows of those left out: malformed, or marked `noindex`.
    pub skipped: usize,
    /// Rows of those that repeated an earlier one.
    pub duplicates: usize,
    /// Whether an upstream key is set (SPEC 1.5).
    pub has_api_key: bool,
    /// Where the catalog came from.
    pub source: CatalogSource,
    /// When it was fetched.
    pub fetched_at: Option<Timestamp>,
    /// Older than the refresh interval, or the last attempt to renew it failed.
    pub is_stale: bool,
    /// Whether a refresh is under way.
    pub is_refreshing: bool,
    /// Why the last refresh failed; `None` once one succeeds.
    pub last_error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timeframe_reads_back() {
        for timeframe in Timeframe::ALL {
            assert_eq!(timeframe.as_str().parse::<Timeframe>().ok(), Some(timeframe));
        }
        assert!("24H".parse::<Timeframe>().is_err());
    }
}
