//! Synthetic catalogs in the upstream's body format (UPSTREAM 1): any size, the same for the same seed.
//!
//! Invariant: an app follows from the seed and its index alone, so the millionth costs no more than the first.

mod oddities;
mod words;

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use serde_json::{Value, json};

pub use self::oddities::{Oddity, full_frame, oddities};
use crate::{random::Random, upstream::CATEGORIES};

/// CAIP-2 ids with the network's name (UPSTREAM 1).
pub const CHAINS: [(&str, &str); 17] = [
    ("eip155:1", "ethereum"),
    ("eip155:8453", "base"),
    ("eip155:42161", "arbitrum"),
    ("eip155:421614", "arbitrum-sepolia"),
    ("eip155:84532", "base-sepolia"),
    ("eip155:666666666", "degen"),
    ("eip155:100", "gnosis"),
    ("eip155:10", "optimism"),
    ("eip155:11155420", "optimism-sepolia"),
    ("eip155:137", "polygon"),
    ("eip155:11155111", "ethereum-sepolia"),
    ("eip155:7777777", "zora"),
    ("eip155:130", "unichain"),
    ("eip155:10143", "monad-testnet"),
    ("eip155:42220", "celo"),
    ("eip155:999", "hyperevm"),
    ("solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp", "solana"),
];

/// A row as upstream keeps it: the text it sends, and what it filters by.
#[derive(Debug, Clone)]
pub struct Row {
    /// The frame as JSON text; may be malformed on purpose.
    pub body: String,
    /// The category that upstream files it under.
    pub category: Option<String>,
    /// The networks that upstream knows it to need, whether or not the row says so.
    pub networks: Vec<String>,
}

impl Row {
    /// A row of raw text, without category and networks.
    pub fn raw(body: impl Into<String>) -> Row {
        Row { body: body.into(), category: None, networks: Vec::new() }
    }
}

impl From<Value> for Row {
    /// Filed under what the frame itself says.
    fn from(frame: Value) -> Row {
        let manifest = match &frame["manifest"]["miniapp"] {
            Value::Null => &frame["manifest"]["frame"],
            miniapp => miniapp,
        };
        let category = manifest["primary_category"].as_str().map(str::to_owned);
        let chains = manifest["required_chains"].as_array().map_or(&[][..], Vec::as_slice);
        let networks = chains
            .iter()
            .filter_map(Value::as_str)
            .map(|chain| CHAINS.iter().find(|(id, _)| *id == chain).map_or(chain, |(_, name)| name).to_owned());
        Row { category, networks: networks.collect(), body: frame.to_string() }
    }
}

/// An invented mini app.
#[derive(Debug, Clone, PartialEq)]
pub struct App {
    /// Its place in the 24h order, from 0.
    pub index: usize,
    /// Display name.
    pub name: String,
    /// Home URL; its host carries the index, so every app has its own.
    pub home_url: String,
    /// The id the library gives it.
    pub id: String,
    /// One of upstream's, or none.
    pub category: Option<&'static str>,
    /// What it needs; empty for most.
    pub networks: Vec<&'static str>,
    /// Up to five.
    pub tags: Vec<String>,
    /// A sentence or two.
    pub description: Option<String>,
    /// A few words.
    pub subtitle: Option<String>,
    /// A few words.
    pub tagline: Option<String>,
    /// Farcaster id, handle, followers, score.
    pub author: (u64, String, u64, f64),
}

/// A catalog of invented apps.
#[derive(Debug, Clone, Copy)]
pub struct Catalog {
    seed: u64,
    size: usize,
    says_chains: bool,
}

impl Catalog {
    /// `size` apps of the default seed, with bodies that carry no chains, as Neynar's.
    pub fn of(size: usize) -> Catalog {
        Catalog { seed: 2835, size, says_chains: false }
    }

    /// Of another seed.
    pub fn seeded(self, seed: u64) -> Catalog {
        Catalog { seed, ..self }
    }

    /// With `required_chains` in the bodies.
    pub fn saying_chains(self) -> Catalog {
        Catalog { says_chains: true, ..self }
    }

    /// The app at this place.
    pub fn app(&self, index: usize) -> App {
        let mut random = Random::seeded(self.seed ^ (index as u64).wrapping_mul(0xD134_2543_DE82_EF95));
        let name = words::name(&mut random);
        let handle = words::handle(&mut random);
        let host = words::slug(&name);
        let path = if random.percent(15) { "/app/Start" } else { "" };
        let id = format!("{host}{}{index}.example{path}", if host.is_empty() { "" } else { "-" });
        let category = (!random.percent(18)).then(|| random.pick(&CATEGORIES));
        let mut networks = Vec::new();
        if random.percent(30) {
            for _ in 0..=random.below(3) {
                let (_, network) = random.pick(&CHAINS);
                // Upstream's own list has no hyperevm.
                if network != "hyperevm" && !networks.contains(&network) {
                    networks.push(network);
                }
            }
        }
        App {
            index,
            home_url: format!("https://{id}"),
            id,
            category,
            networks,
            tags: words::tags(&mut random),
            description: (!random.percent(11)).then(|| words::sentence(&mut random)),
            subtitle: random.percent(52).then(|| words::phrase(&mut random)),
            tagline: random.percent(20).then(|| words::phrase(&mut random)),
            author: (
                1000 + random.below(1_500_000) as u64,
                handle,
                random.below(30_000) as u64,
                random.below(101) as f64 / 100.0,
            ),
            name,
        }
    }

    /// All apps, most trending first.
    pub fn apps(self) -> impl Iterator<Item = App> {
        (0..self.size).map(move |index| self.app(index))
    }

    /// The frame of an app.
    pub fn frame(&self, app: &App) -> Value {
        let (fid, username, followers, score) = &app.author;
        let mut manifest = json!({
            "version": "1",
            "name": app.name,
            "home_url": app.home_url,
            "icon_url": format!("https://{}/icon.png", app.id),
            "image_url": format!("https://{}/card.png", app.id),
            "button_title": "Open",
            "splash_image_url": format!("https://{}/splash.png", app.id),
            "splash_background_color": "#1a2b3c",
            "tags": app.tags,
            "screenshot_urls": [format!("https://{}/1.png", app.id)],
        });
        let optional = [
            ("primary_category", app.category.map(str::to_owned)),
            ("description", app.description.clone()),
            ("subtitle", app.subtitle.clone()),
            ("tagline", app.tagline.clone()),
        ];
        for (part, text) in optional {
            if let Some(text) = text {
                manifest[part] = text.into();
            }
        }
        if self.says_chains && !app.networks.is_empty() {
            let chain = |name: &&str| CHAINS.iter().find(|(_, known)| known == name).map(|(id, _)| *id);
            manifest["required_chains"] = app.networks.iter().filter_map(chain).collect::<Vec<_>>().into();
        }
        json!({
            "version": "next",
            "image": format!("https://{}/image.png", app.id),
            "frames_url": app.home_url,
            "title": "Launch",
            "manifest": { "frame": manifest },
            "author": {
                "object": "user",
                "fid": fid,
                "username": username,
                "display_name": words::capitalised(username),
                "pfp_url": format!("https://pictures.example/{fid}.png"),
                "follower_count": followers,
                "following_count": 12,
                "score": score,
            },
            "metadata": { "html": {} },
        })
    }

    /// The row of an app.
    pub fn row(&self, app: &App) -> Row {
        Row {
            body: self.frame(app).to_string(),
            category: app.category.map(str::to_owned),
            networks: app.networks.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    /// All rows, most trending first.
    pub fn rows(self) -> impl Iterator<Item = Row> {
        self.apps().map(move |app| self.row(&app))
    }

    /// Writes a `file:` catalog: one page without a next one. Streams, so a million apps need no memory.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write(self, path: &Path) -> io::Result<()> {
        write_rows(path, self.rows())
    }
}

/// Writes a `file:` catalog of these rows.
///
/// # Errors
/// What the file system says.
pub fn write_rows(path: &Path, rows: impl IntoIterator<Item = Row>) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(br#"{"frames":["#)?;
    for (index, row) in rows.into_iter().enumerate() {
        if index > 0 {
            file.write_all(b",\n")?;
        }
        file.write_all(row.body.as_bytes())?;
    }
    file.write_all(br#"],"next":{"cursor":null}}"#)?;
    file.into_inner()?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_catalog() {
        let catalog = Catalog::of(50);
        assert!(catalog.apps().eq(catalog.apps()));
        assert_ne!(catalog.app(7), catalog.seeded(1).app(7));
        assert_eq!(catalog.app(7), Catalog::of(1_000_000).app(7));
    }

    #[test]
    fn names_are_varied_and_ids_unique() {
        let apps: Vec<_> = Catalog::of(2_490).apps().collect();
        let names: std::collections::HashSet<_> = apps.iter().map(|app| &app.name).collect();
        let ids: std::collections::HashSet<_> = apps.iter().map(|app| &app.id).collect();
        assert!(names.len() > 2_400, "{}", names.len());
        assert_eq!(ids.len(), apps.len());
        assert!(apps.iter().any(|app| !app.name.is_ascii()));
    }
}
