//! Invented catalogs of any size in the upstream's body format (UPSTREAM 1), for tests and benches.
//!
//! Invariant: an app depends only on seed and index. Without a seed, names and texts never change, so the benches'
//! figures are comparable between versions. A row takes about 780 bytes and has tags, category and description as often
//! as a row of the real catalog.

mod malformed_rows;
mod splitmix;
mod words;

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use serde_json::{Value, json};

pub use self::{
    malformed_rows::{MalformedRow, full_frame, malformed_rows},
    splitmix::SplitMix,
};
use crate::upstream::CATEGORIES;

/// CAIP-2 chain ids with their network names (UPSTREAM 1).
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

/// A row of the upstream: the JSON text it sends, and the values it filters by.
#[derive(Debug, Clone)]
pub struct Row {
    /// The frame as JSON text; malformed in some tests.
    pub body: String,
    /// The category by which the upstream filters.
    pub category: Option<String>,
    /// The networks by which the upstream filters, whether or not the body names them.
    pub networks: Vec<String>,
}

impl Row {
    /// Makes a row of raw text without category and networks.
    pub fn raw(body: impl Into<String>) -> Row {
        Row { body: body.into(), category: None, networks: Vec::new() }
    }
}

impl From<Value> for Row {
    /// Takes category and networks from the frame.
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

/// A word in the texts of about a quarter of the invented apps.
pub const FREQUENT_WORD: &str = "pliox";

/// An invented mini app.
#[derive(Debug, Clone, PartialEq)]
pub struct App {
    /// Position in the 24h order, from 0.
    pub index: usize,
    /// The id that the library derives: the host of the home URL, unique by the index in it.
    pub id: String,
    /// Display name.
    pub name: String,
    /// At most five.
    pub tags: Vec<String>,
    /// One of the upstream's categories; absent in 18 percent.
    pub category: Option<&'static str>,
    /// Four words; absent in half.
    pub subtitle: Option<String>,
    /// Four words; absent in most.
    pub tagline: Option<String>,
    /// User name of the author.
    pub author: String,
    /// 6 to 19 words; absent in 11 percent.
    pub description: Option<String>,
    /// The networks it requires; empty in 70 percent.
    pub networks: Vec<&'static str>,
}

/// A catalog of invented apps.
#[derive(Debug, Clone, Copy)]
pub struct Catalog {
    seed: u64,
    size: usize,
    names_chains: bool,
}

impl Catalog {
    /// Makes a catalog of `size` apps whose bodies have no `required_chains`, as Neynar's bodies have none.
    pub fn of(size: usize) -> Catalog {
        Catalog { seed: 0, size, names_chains: false }
    }

    /// Changes every app to that of another seed.
    pub fn seeded(self, seed: u64) -> Catalog {
        Catalog { seed, ..self }
    }

    /// Adds `required_chains` to the bodies.
    pub fn with_chains(self) -> Catalog {
        Catalog { names_chains: true, ..self }
    }

    /// Returns the app at this position.
    pub fn app(&self, index: usize) -> App {
        let seed = (self.seed << 32) + index as u64 + 1;
        let random = &mut SplitMix::new(seed);
        let own = words::capitalised(&words::invented(random));
        let mut distinctive = || words::capitalised(&words::distinctive(random));
        let (first, second) = (distinctive(), distinctive());
        let name = match random.below(100) {
            0..40 => own,
            40..58 => format!("{own} {first}"),
            58..73 => format!("{first} {second}"),
            73..88 => format!("{first} {own} {second}"),
            88..94 => format!("{own}{first}"),
            _ => own.to_uppercase(),
        };
        let slug: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        let author = words::invented(random);
        let tags = if random.percent(60) { 1 + random.below(5) } else { 0 };
        App {
            index,
            id: format!("{slug}-{index}.example"),
            name,
            tags: (0..tags).map(|_| words::distinctive(random)).collect(),
            category: random.percent(82).then(|| random.pick(&CATEGORIES)),
            subtitle: random.percent(52).then(|| words::text(4, random)),
            tagline: random.percent(20).then(|| words::text(4, random)),
            author,
            description: random.percent(89).then(|| {
                let length = 6 + random.below(14);
                words::text(length, random)
            }),
            networks: networks(&mut SplitMix::new(!seed)),
        }
    }

    /// Returns all apps, most trending first.
    pub fn apps(self) -> impl Iterator<Item = App> {
        (0..self.size).map(move |index| self.app(index))
    }

    /// Returns the frame of an app.
    pub fn frame(&self, app: &App) -> Value {
        let (domain, fid) = (&app.id, 1_000 + app.index);
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
            ("description", app.description.as_deref()),
            ("subtitle", app.subtitle.as_deref()),
            ("tagline", app.tagline.as_deref()),
        ];
        for (part, text) in optional {
            if let Some(text) = text {
                manifest[part] = text.into();
            }
        }
        if self.names_chains && !app.networks.is_empty() {
            let chain = |name: &&str| CHAINS.iter().find(|(_, known)| known == name).map(|(id, _)| *id);
            manifest["required_chains"] = app.networks.iter().filter_map(chain).collect::<Vec<_>>().into();
        }
        json!({
            "version": "next",
            "image": format!("https://{domain}/image.png"),
            "frames_url": format!("https://{domain}"),
            "manifest": { "frame": manifest },
            "author": {
                "object": "user",
                "fid": fid,
                "username": app.author,
                "display_name": words::capitalised(&app.author),
                "pfp_url": format!("https://pictures.example/{fid}.png"),
                "follower_count": 30_000 / (1 + app.index % 997),
                "score": 0.5,
            },
            "metadata": { "html": {} },
        })
    }

    /// Returns all rows, most trending first.
    pub fn rows(self) -> impl Iterator<Item = Row> {
        self.apps().map(move |app| Row {
            body: self.frame(&app).to_string(),
            category: app.category.map(str::to_owned),
            networks: app.networks.iter().map(|name| (*name).to_owned()).collect(),
        })
    }

    /// Writes a `file:` catalog: one page without a next one. Streams the rows, so a million apps need no memory.
    ///
    /// # Errors
    /// The file system's error.
    pub fn write(self, path: &Path) -> io::Result<()> {
        write_rows(path, self.rows().map(|row| row.body))
    }
}

/// Up to three networks for three apps of ten. The upstream's list has no hyperevm.
fn networks(random: &mut SplitMix) -> Vec<&'static str> {
    let count = if random.percent(30) { 1 + random.below(3) } else { 0 };
    let mut networks: Vec<_> = (0..count).map(|_| random.pick(&CHAINS).1).filter(|name| *name != "hyperevm").collect();
    networks.sort_unstable();
    networks.dedup();
    networks
}

/// Writes a `file:` catalog of these rows.
///
/// # Errors
/// The file system's error.
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_seed_always_makes_the_same_catalog() {
        let catalog = Catalog::of(50);
        assert!(catalog.apps().eq(catalog.apps()));
        assert_ne!(catalog.app(7), catalog.seeded(1).app(7));
        assert_eq!(catalog.app(7), Catalog::of(1_000_000).app(7));
    }

    #[test]
    fn the_catalog_of_the_benches_never_changes() {
        let folder = crate::temp_dir();
        let file = folder.path().join("catalog.json");
        Catalog::of(5_000).write(&file).expect("the temporary folder is writable");
        let bytes = std::fs::read(&file).expect("the catalog");
        // FNV-1a
        let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        assert_eq!(bytes.len(), 4152012);
        assert_eq!(bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold), 0xe386f7d4899f8e6d);
    }

    #[test]
    fn names_are_varied_ids_unique_and_rows_as_long_as_real_ones() {
        let catalog = Catalog::of(2_490);
        let apps: Vec<_> = catalog.apps().collect();
        let names: HashSet<_> = apps.iter().map(|app| &app.name).collect();
        let ids: HashSet<_> = apps.iter().map(|app| &app.id).collect();
        assert!(names.len() > 2_400, "{}", names.len());
        assert_eq!(ids.len(), apps.len());
        let mean = catalog.rows().map(|row| row.body.len()).sum::<usize>() / apps.len();
        assert!((700..860).contains(&mean), "{mean} bytes a row");
        let frequent = catalog.rows().filter(|row| row.body.contains(FREQUENT_WORD)).count();
        assert!(frequent > apps.len() / 5, "{frequent} rows contain {FREQUENT_WORD}");
    }
}
