//! Errors: branch on the kind, tell people what to do, and repeat only what may be repeated.
#![allow(clippy::print_stdout, reason = "an example prints its results")]
#![allow(clippy::disallowed_methods, reason = "a program waits before it repeats a call")]

// ANCHOR: program
use std::{thread::sleep, time::Duration};

use townsquare::{
    Config, ErrorKind, Result, Uuid,
    blocking::Client,
    spaces::{NewFidget, NewSpace},
};

/// Repeats a call that may be repeated, and waits longer each time.
fn repeated<T>(mut tries: u32, call: impl Fn() -> Result<T>) -> Result<T> {
    let mut wait = Duration::from_millis(100);
    loop {
        match call() {
            Err(error) if error.is_retryable() && tries > 1 => sleep(error.retry_after().unwrap_or(wait)),
            result => return result,
        }
        tries -= 1;
        wait *= 2;
    }
}

fn main() -> Result<()> {
    let client = Client::open(Config::new().data_dir(":memory:"))?;
    let service = client.as_service();
    let space = repeated(3, || service.spaces().create_space(NewSpace::named("Harbor")))?;

    // What a missing row means depends on the program: here a stranger asks for a private space.
    match client.spaces().get_space(space.id) {
        Err(error) if error.kind() == ErrorKind::NotFound => println!("There is no such space."),
        result => drop(result?),
    }

    // The sentence is for a log, the explanation for the developer, the status for an HTTP answer.
    let nowhere = Uuid::from_u128(0x0192_f0c1_7a3b_7c4d_8e5f_0000_0000_0001);
    let results = [
        service.spaces().create_space(NewSpace::named("Quay").with_id(space.id)).map(drop),
        service.fidgets().create_fidget(nowhere, NewFidget::of_type("clock")).map(drop),
        client.auth().list_users(100, None).map(drop),
    ];
    for error in results.into_iter().filter_map(Result::err) {
        println!("{} {} {} {error}", error.kind().as_str(), error.code().unwrap_or("-"), error.status());
        println!("  try: {}", error.explanation());
    }
    client.close();
    Ok(())
}
// ANCHOR_END: program

/// Runs the program in the test of the book.
pub(super) fn run() -> Result<()> {
    main()
}
