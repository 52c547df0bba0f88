//! The replay of a long log by a cursor.

use std::time::Duration;

use serde_json::{Map, Value};
use townsquare::{realtime::ChangeRequest, spaces::NewSpace};
use townsquare_benches::sized;
use townsquare_tests::raw_sql::RawConnection;

use crate::{median, service_of, timed};

const PATIENCE: Duration = Duration::from_secs(60);

/// Replays a log whose entries are the rows of large inserts, beside a plain program that reads and parses the log's rows.
pub(crate) fn run(engine: &str, url: &str) {
    let service = service_of(url);
    let cursor = service.realtime().cursor().expect("a cursor");
    let count = sized(1_000_000, 1_000);
    for first in (0..count).step_by(1_000) {
        let spaces = (first..count.min(first + 1_000))
            .map(|number| NewSpace::named(format!("Space {number}")).description("What it is about, in a few words"));
        service.spaces().create_spaces(spaces.collect()).expect("spaces");
    }
    let mut rates = Vec::new();
    for _ in 0..sized(3, 1) {
        let request = ChangeRequest::table("spaces").since(&cursor);
        let mut changes = service.realtime().changes(request).expect("a stream");
        let taken = timed(|| {
            for _ in 0..count {
                changes.next_within(PATIENCE).expect("a change").expect("no error");
            }
        });
        rates.push(count as f64 / taken.as_secs_f64());
    }
    println!("{engine}: replay of {count} changes: {:.0} a second (median of {})", median(rates.clone()), rates.len());
    service.close();
    let mut read = 0;
    let floor = timed(|| read = read_log(url));
    println!("  floor: its rows read page by page and parsed: {:.0} a second", read as f64 / floor.as_secs_f64());
}

/// Reads the log as a plain program would. Returns the number of rows.
fn read_log(url: &str) -> usize {
    let raw = match url.strip_prefix("sqlite:") {
        Some(file) => RawConnection::sqlite(file.as_ref()),
        None => RawConnection::postgres(url).expect("the server runs"),
    };
    let (table, new) =
        if url.starts_with("sqlite:") { ("townsquare_changes", "new") } else { ("townsquare.changes", "new_row") };
    let (mut after, mut read) = ("0".to_owned(), 0);
    loop {
        // Without `log.` the order would be that of the column of the result, a text.
        let sql = format!(
            "SELECT CAST(log.id AS TEXT), {new} FROM {table} AS log WHERE log.id > {after} ORDER BY log.id LIMIT 1000"
        );
        let page = raw.rows(&sql);
        for row in &page {
            let image = row[1].as_deref().expect("an image");
            std::hint::black_box(serde_json::from_str::<Map<String, Value>>(image).expect("an object"));
        }
        read += page.len();
        match page.last() {
            Some(row) => after = row[0].clone().expect("an id"),
            None => return read,
        }
    }
}
