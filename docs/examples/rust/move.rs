//! A move: everything of one client into an empty database and file store, compared at the end.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

// ANCHOR: program
use std::ops::ControlFlow;

use townsquare::{Config, MoveOptions, Result, blocking::Client, storage::UploadOptions};

fn main() -> Result<()> {
    let client = Client::open(Config::new().data_dir("town"))?;
    client.auth().sign_up("ann@town.example", "correct horse")?;
    let session = client.auth().create_session("ann@town.example", "correct horse")?;
    client.as_service().storage().upload("assets", "images/harbor.txt", "a picture", UploadOptions::new())?;

    // The target is named as for `open`. It may as well be postgres://… and s3://….
    println!("target: {}", client.check_move(Config::new().data_dir("moved"))?.as_str());
    let go_on = |_done, _all| ControlFlow::Continue(());
    let report = client.move_to(Config::new().data_dir("moved"), MoveOptions::new(), go_on)?;
    let resumed = if report.resumed { "yes" } else { "no" };
    println!("users: {} files: {} resumed: {resumed}", report.rows["users"], report.files);
    client.close();

    let client = Client::open(Config::new().data_dir("moved"))?;
    let is_signed_in = client.as_user(&session.access_token)?.auth().get_session()?.is_some();
    println!("still signed in: {}", if is_signed_in { "yes" } else { "no" });
    println!("{}", String::from_utf8_lossy(&client.storage().download("assets", "images/harbor.txt")?));
    client.close();
    Ok(())
}
// ANCHOR_END: program

/// Runs the program in the test of the book.
pub(super) fn run() -> Result<()> {
    main()
}
