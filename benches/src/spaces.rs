//! Databases with many spaces.
//!
//! Invariant: every space has an owner and a description, so that no column is empty and pages join users.

use std::path::Path;

use rusqlite::Connection;
use townsquare::{
    Config, Uuid,
    blocking::Client,
    spaces::{DEFAULT_PAGE, NewSpace},
};

/// Opens a client without a catalog.
///
/// # Panics
/// When the library fails.
pub fn open(url: &str) -> Client {
    Client::open(Config::new().database_url(url).catalog_api_key("")).expect("the client opens")
}

/// Returns the URL of a SQLite file.
pub fn sqlite_url(file: &Path) -> String {
    format!("sqlite:{}", file.display())
}

/// Returns an `INSERT` of `count` users for both engines, and their ids.
pub fn owners(count: u128) -> (String, Vec<Uuid>) {
    let ids: Vec<_> = (1..=count).map(Uuid::from_u128).collect();
    let rows: Vec<_> = ids.iter().map(|id| format!("('{id}', '{}@town.example')", id.simple())).collect();
    (format!("INSERT INTO users (id, email) VALUES {}", rows.join(", ")), ids)
}

/// Creates `size` public spaces, with the owners in turn; returns their ids.
///
/// # Panics
/// When the disk is full or the library fails.
pub fn fill(client: &Client, owners: &[Uuid], size: usize) -> Vec<Uuid> {
    let (service, mut ids) = (client.as_service(), Vec::with_capacity(size));
    while ids.len() < size {
        let spaces = (ids.len()..size.min(ids.len() + 10_000)).map(|number| {
            let space = NewSpace::named(format!("Space {number}")).description("What it is about, in a few words");
            space.owned_by(owners[number % owners.len()]).public()
        });
        let created = service.spaces().create_spaces(spaces.collect()).expect("spaces");
        ids.extend(created.iter().map(|space| space.id));
    }
    ids
}

/// The user of [`fill_whale`].
const WHALE: Uuid = Uuid::from_u128(1 << 64);

/// An `INSERT` of the user of [`fill_whale`], for both engines.
pub fn insert_whale() -> String {
    format!("INSERT INTO users (id, email) VALUES ('{WHALE}', 'whale@town.example')")
}

/// Creates `size` private spaces of one owner, and then the newest public ones, which fill the first page.
///
/// # Panics
/// When the disk is full or the library fails.
pub fn fill_whale(client: &Client, size: usize) {
    let service = client.as_service();
    for first in (0..size).step_by(10_000) {
        let spaces =
            (first..size.min(first + 10_000)).map(|number| NewSpace::named(format!("Own {number}")).owned_by(WHALE));
        service.spaces().create_spaces(spaces.collect()).expect("spaces");
    }
    let public = (0..DEFAULT_PAGE).map(|number| NewSpace::named(format!("Shown {number}")).owned_by(WHALE).public());
    service.spaces().create_spaces(public.collect()).expect("spaces");
}

/// Creates a SQLite database with `size` public spaces of a thousand owners; returns a client on it and the ids.
///
/// # Panics
/// When the disk is full or the library fails.
pub fn database_of(file: &Path, size: usize) -> (Client, Vec<Uuid>) {
    let client = open(&sqlite_url(file));
    let (insert, owners) = owners(1_000);
    Connection::open(file).and_then(|raw| raw.execute_batch(&insert)).expect("users");
    let ids = fill(&client, &owners, size);
    (client, ids)
}
