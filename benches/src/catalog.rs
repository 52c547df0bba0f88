//! The searchable texts of a catalog file, real or invented (`townsquare_tests::catalog` invents them).

use std::{collections::HashSet, fs, io, path::Path};

use serde_json::Value;

/// The searchable texts of an app.
#[derive(Debug, Clone, PartialEq)]
pub struct App {
    /// Display name.
    pub name: String,
    /// Search tags.
    pub tags: Vec<String>,
    /// One of the upstream's categories, or none.
    pub category: Option<String>,
    /// A short text, or none.
    pub subtitle: Option<String>,
    /// A short text, or none.
    pub tagline: Option<String>,
    /// User name and display name; empty without an author.
    pub author: String,
    /// A text, or none.
    pub description: Option<String>,
    /// The host of the home URL.
    pub domain: String,
}

/// Reads the apps of a catalog file, without duplicates.
///
/// # Errors
/// When the file is not a catalog.
pub fn read(path: &Path) -> io::Result<Vec<App>> {
    let body: Value = serde_json::from_slice(&fs::read(path)?)?;
    let frames = body["frames"].as_array().ok_or_else(|| io::Error::other("no list of frames"))?;
    let mut seen = HashSet::new();
    Ok(frames.iter().filter_map(|frame| read_frame(frame, &mut seen)).collect())
}

fn read_frame(frame: &Value, seen: &mut HashSet<String>) -> Option<App> {
    let manifest = match &frame["manifest"]["miniapp"] {
        Value::Null => &frame["manifest"]["frame"],
        miniapp => miniapp,
    };
    let text = |value: &Value| value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let home = text(&manifest["home_url"]).or_else(|| text(&frame["frames_url"]))?;
    let home = url::Url::parse(&home).ok()?;
    let domain = home.host_str()?.to_owned();
    let id = format!("{domain}{}{:?}", home.path().trim_end_matches('/'), home.query());
    if !seen.insert(id) {
        return None;
    }
    let author = [&frame["author"]["username"], &frame["author"]["display_name"]];
    Some(App {
        name: text(&manifest["name"]).or_else(|| text(&frame["title"])).unwrap_or_else(|| domain.clone()),
        tags: manifest["tags"].as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(text).collect(),
        category: text(&manifest["primary_category"]),
        subtitle: text(&manifest["subtitle"]),
        tagline: text(&manifest["tagline"]),
        author: author.into_iter().filter_map(text).collect::<Vec<_>>().join(" "),
        description: text(&manifest["description"]),
        domain,
    })
}
