//! Copies a Supabase project with its passwords and files to a folder. The project is only read.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

// ANCHOR: program
use std::{env, error::Error, ops::ControlFlow};

use townsquare::{Config, SupabaseProject, blocking::Client};

fn main() -> Result<(), Box<dyn Error>> {
    // With the role `postgres`, which may read every row. The folder has the files as BUCKET/NAME.
    let project = SupabaseProject::new(env::var("PROJECT_URL")?).files("storage");
    let target = || Config::new().data_dir("town").buckets("avatars=public");

    // Writes nothing. It also looks for the bytes of every file.
    let check = Client::check_move_from_supabase(project.clone(), target())?;
    println!("faults: {}", check.faults.len());
    for bucket in &check.published_buckets {
        println!("private in the project, public in the target: {bucket}");
    }

    let report = Client::move_from_supabase(project, target(), |_done, _all| ControlFlow::Continue(()))?;
    println!("users: {}, passwords: {}", report.rows["users"], report.rows["credentials"]);
    println!("files: {}, bytes: {}", report.files, report.bytes);
    println!("banned, so without a password: {}", report.skipped.banned_users);

    // The old password signs in. From now on it is stored as an Argon2id hash.
    let client = Client::open(target())?;
    let session = client.auth().sign_in("ann@town.example", "correct horse")?;
    println!("signed in: {}", session.user.email);
    client.close();
    Ok(())
}
// ANCHOR_END: program

/// Runs the program in the test of the book.
pub(super) fn run() -> Result<(), Box<dyn Error>> {
    main()
}
