//! Changes: a stream, what leaves a caller's view, a filter, and a cursor that goes on after a pause.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

// ANCHOR: program
use std::time::Duration;

use townsquare::{
    Config, Result,
    blocking::{ChangeStream, Client},
    realtime::{ChangeRequest, LiveRequest},
    spaces::{NewFidget, NewSpace, SpacePatch},
};

/// Prints the next changes, and returns the position after them.
fn print_changes(changes: &mut ChangeStream, count: usize) -> Result<String> {
    let mut cursor = String::new();
    for _ in 0..count {
        if let Some(change) = changes.next_within(Duration::from_secs(10)).transpose()? {
            println!("{} of {}", change.event_type, change.table);
            cursor = change.cursor.to_string();
        }
    }
    Ok(cursor)
}

fn main() -> Result<()> {
    let client = Client::open(Config::new().data_dir(":memory:"))?;
    let service = client.as_service();
    let harbor = service.spaces().create_space(NewSpace::named("Harbor").public())?;

    // The stream is live when `changes` returns. It acts for the caller of its handle: here an anonymous one.
    let mut changes = client.realtime().changes(ChangeRequest::table("spaces"))?;
    service.spaces().create_space(NewSpace::named("Secret"))?; // private: the stream does not show it
    service.spaces().update_space(harbor.id, SpacePatch::new().name("Quay"))?;
    service.spaces().update_space(harbor.id, SpacePatch::new().hidden())?;
    let cursor = print_changes(&mut changes, 2)?; // store it with the work that it stands for
    drop(changes);

    // While nobody listens, the log goes on.
    service.fidgets().create_fidget(harbor.id, NewFidget::of_type("clock"))?;
    service.fidgets().create_fidget(harbor.id, NewFidget::of_type("chess"))?;
    service.spaces().delete_space(harbor.id)?;

    // From the cursor on, without gap and repeat, up to now.
    let of_harbor = ChangeRequest::table("fidgets").filter(format!("space_id=eq.{}", harbor.id));
    for change in service.realtime().changes(of_harbor.since(cursor).until(service.realtime().cursor()?))? {
        let change = change?;
        println!("{} of {}", change.event_type, change.table);
    }

    // Rows first, then their changes.
    let mut live = service.realtime().live(LiveRequest::table("spaces").filter("name=eq.Secret"))?;
    println!("rows now: {}", live.rows.len());
    service.spaces().create_space(NewSpace::named("Secret"))?;
    if let Some(change) = live.changes.next().transpose()? {
        println!("then: {}", change.event_type);
    }

    if let Err(error) = client.realtime().changes(ChangeRequest::table("spaces").filter("colour=eq.red")) {
        println!("{error}");
    }
    client.close();
    Ok(())
}
// ANCHOR_END: program

/// Runs the program in the test of the book.
pub(super) fn run() -> Result<()> {
    main()
}
