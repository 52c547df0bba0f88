//! Catalogs: invented ones of any size, and the real one when it is at hand, both as the texts that are searched and as
//! the upstream's body (UPSTREAM 1).
//!
//! Invariant: an app follows from its index alone; written out it takes about 780 bytes, as the rows of the real
//! catalog do, and has tags, category, description as often as they have.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{random::Random, words};

const CATEGORIES: [&str; 13] = [
    "games",
    "social",
    "finance",
    "utility",
    "productivity",
    "health-fitness",
    "news-media",
    "music",
    "shopping",
    "education",
    "developer-tools",
    "entertainment",
    "art-creativity",
];

/// The texts of an app that a search looks at.
#[derive(Debug, Clone, PartialEq)]
pub struct App {
    /// Display name.
    pub name: String,
    /// Search tags.
    pub tags: Vec<String>,
    /// One of the upstream's, or none.
    pub category: Option<String>,
    /// A few words, or none.
    pub subtitle: Option<String>,
    /// A few words, or none.
    pub tagline: Option<String>,
    /// Handle and displayed name; empty without an author.
    pub author: String,
    /// A sentence or two, or none.
    pub description: Option<String>,
    /// Host of the home URL.
    pub domain: String,
}

/// The invented app at this place of the order.
pub fn app(index: usize) -> App {
    let random = &mut Random::seeded(index as u64 + 1);
    let own = words::capitalised(&words::invented(random));
    let mut telling = || words::capitalised(&words::telling(random));
    let (first, second) = (telling(), telling());
    let name = match random.below(100) {
        0..40 => own,
        40..58 => format!("{own} {first}"),
        58..73 => format!("{first} {second}"),
        73..88 => format!("{first} {own} {second}"),
        88..94 => format!("{own}{first}"),
        _ => own.to_uppercase(),
    };
    let slug: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let handle = words::invented(random);
    let tags = if random.percent(60) { 1 + random.below(5) } else { 0 };
    App {
        name,
        tags: (0..tags).map(|_| words::telling(random)).collect(),
        category: random.percent(82).then(|| random.pick(&CATEGORIES).to_owned()),
        subtitle: random.percent(52).then(|| words::text(4, random)),
        tagline: random.percent(20).then(|| words::text(4, random)),
        author: format!("{handle} {}", words::capitalised(&handle)),
        description: random.percent(89).then(|| {
            let length = 6 + random.below(14);
            words::text(length, random)
        }),
        domain: format!("{slug}-{index}.example"),
    }
}

/// Its row in the upstream's body.
pub fn frame(index: usize) -> Value {
    let app = app(index);
    let (domain, fid) = (&app.domain, 1_000 + index);
    let handle = app.author.split(' ').next().unwrap_or_default();
    let mut manifest = json!({
        "version": "1",
        "name": app.name,
        "home_url": format!("https://{domain}"),
        "icon_url": format!("https://{domain}/icon.png"),
        "image_url": format!("https://{domain}/image.png"),
        "button_title": "Open",
        "splash_image_url": format!("https://{domain}/splash.png"),
        "splash_background_color": "#1a2b3c",
        "tags": app.tags,
    });
    let optional = [
        ("primary_category", app.category),
        ("description", app.description),
        ("subtitle", app.subtitle),
        ("tagline", app.tagline),
    ];
    for (part, text) in optional {
        if let Some(text) = text {
            manifest[part] = text.into();
        }
    }
    json!({
        "version": "next",
        "image": format!("https://{domain}/image.png"),
        "frames_url": format!("https://{domain}"),
        "manifest": { "frame": manifest },
        "author": {
            "object": "user",
            "fid": fid,
            "username": handle,
            "display_name": words::capitalised(handle),
            "pfp_url": format!("https://pictures.example/{fid}.png"),
            "follower_count": 30_000 / (1 + index % 997),
            "score": 0.5,
        },
        "metadata": { "html": {} },
    })
}

/// Writes a `file:` catalog of `size` invented apps; streams, so a million need no memory.
///
/// # Errors
/// What the file system says.
pub fn write(path: &Path, size: usize) -> io::Result<()> {
    write_rows(path, (0..size).map(|index| frame(index).to_string()))
}

/// Writes a `file:` catalog of these rows.
///
/// # Errors
/// What the file system says.
pub fn write_rows(path: &Path, rows: impl IntoIterator<Item = String>) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(br#"{"frames":["#)?;
    for (index, row) in rows.into_iter().enumerate() {
        if index > 0 {
            file.write_all(b",")?;
        }
        file.write_all(row.as_bytes())?;
    }
    file.write_all(br#"],"next":{"cursor":null}}"#)?;
    file.into_inner()?.sync_all()
}

/// The real catalog, when `shared/data` lies beside the workspace or beside one of its parents.
pub fn real() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().skip(2).map(|folder| folder.join("shared/data/catalog-2835.json")).find(|file| file.is_file())
}

/// The apps of a catalog file, each once.
///
/// # Errors
/// When the file does not read as a catalog.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_long_as_real_ones_and_ids_unique() {
        let rows: Vec<_> = (0..2_000).map(|index| frame(index).to_string()).collect();
        let mean = rows.iter().map(String::len).sum::<usize>() / rows.len();
        assert!((700..860).contains(&mean), "{mean} bytes a row");
        let domains: HashSet<_> = (0..2_000).map(|index| app(index).domain).collect();
        assert_eq!(domains.len(), 2_000);
    }
}
