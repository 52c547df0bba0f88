//! Rows of Farcaster's own catalog: the app alone, or beside its rank, where Neynar's rows have a frame (UPSTREAM 1).

use serde::Deserialize;

use super::{FrameJson, ManifestJson, ManifestsJson};
use crate::catalog::page::lenient::Object;

/// A row that contains the app.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct RankedRowJson<'a> {
    #[serde(rename = "miniApp")]
    mini_app: Object<ManifestJson<'a>>,
    frame: Object<ManifestJson<'a>>,
}

/// Parses a row without a frame into the shape of Neynar's rows; `None` if it is no object.
pub(super) fn parse(json: &str) -> Option<FrameJson<'_>> {
    let row = serde_json::from_str::<Object<RankedRowJson<'_>>>(json).ok()?.0?;
    let outer = serde_json::from_str::<Object<ManifestJson<'_>>>(json).ok()?.0?;
    let (mut app, outer_author) = match row.mini_app.0.or(row.frame.0) {
        Some(app) => (app, outer.author),
        None => (outer, Object(None)),
    };
    let author = Object(app.author.0.take().or(outer_author.0));
    let manifest = Object(Some(ManifestsJson { miniapp: Object(Some(app)), frame: Object(None) }));
    Some(FrameJson { manifest, author, ..FrameJson::default() })
}
