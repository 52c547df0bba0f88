//! SQLite's FTS5 as a search engine to compare with.
//!
//! Invariant: in memory, with prepared statements, the library's field weights, BM25, the best twenty results and a
//! prefix index. FTS5 has no fuzzy search: queries with a typo use a trigram index of names.

use rusqlite::{Connection, params};

use crate::{catalog::App, comparison::Engine, queries::Kind};

/// An index of apps.
pub struct Fts5(Connection);

const SCHEMA: &str = "
    CREATE VIRTUAL TABLE apps USING fts5(
        name, tags, category, subtitle, tagline, author, description, domain,
        content='', prefix='2 3 4 5', tokenize=\"unicode61 remove_diacritics 2\");
    CREATE VIRTUAL TABLE names USING fts5(name, content='', tokenize='trigram');
    INSERT INTO apps(apps, rank) VALUES ('rank', 'bm25(14.0, 4.0, 4.0, 2.0, 2.0, 1.5, 1.0, 0.8)');
";
const SEARCH: &str = "SELECT rowid FROM apps WHERE apps MATCH ?1 ORDER BY rank LIMIT 20";
const SEARCH_NAMES: &str = "SELECT rowid FROM names WHERE names MATCH ?1 ORDER BY rank LIMIT 20";

impl Fts5 {
    /// Indexes these apps and merges the index into one segment.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn build(apps: &[App]) -> rusqlite::Result<Fts5> {
        let mut database = Connection::open_in_memory()?;
        database.execute_batch(SCHEMA)?;
        let transaction = database.transaction()?;
        {
            let mut insert = transaction.prepare("INSERT INTO apps(rowid, name, tags, category, subtitle, tagline, author, description, domain) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
            let mut insert_name = transaction.prepare("INSERT INTO names(rowid, name) VALUES (?1, ?2)")?;
            for (id, app) in (1i64..).zip(apps) {
                insert.execute(params![
                    id,
                    app.name,
                    app.tags.join(" "),
                    app.category,
                    app.subtitle,
                    app.tagline,
                    app.author,
                    app.description,
                    app.domain
                ])?;
                insert_name.execute(params![id, app.name])?;
            }
        }
        transaction.commit()?;
        database.execute_batch(
            "INSERT INTO apps(apps) VALUES ('optimize'); INSERT INTO names(names) VALUES ('optimize');",
        )?;
        Ok(Fts5(database))
    }

    fn rows(&self, statement: &str, wanted: &str) -> rusqlite::Result<usize> {
        let mut statement = self.0.prepare_cached(statement)?;
        let mut rows = statement.query([wanted])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            std::hint::black_box(row.get::<_, i64>(0)?);
            count += 1;
        }
        Ok(count)
    }
}

impl Engine for Fts5 {
    fn name(&self) -> &'static str {
        "FTS5"
    }

    fn answer(&mut self, kind: Kind, query: &str) -> usize {
        let found = match kind {
            Kind::OneTypo => {
                let letters: Vec<char> = query.chars().collect();
                let trigrams = letters.windows(3).map(|three| format!("\"{}\"", three.iter().collect::<String>()));
                self.rows(SEARCH_NAMES, &trigrams.collect::<Vec<_>>().join(" OR "))
            }
            _ => {
                let words: Vec<_> = query.split(' ').map(|word| format!("\"{word}\"")).collect();
                let open = if kind.is_open() { "*" } else { "" };
                self.rows(SEARCH, &(words.join(" ") + open))
            }
        };
        found.unwrap_or(0)
    }
}
