//! Sign-in: accounts, sessions for many users, rotating tokens, a forgotten password, and the end of every session.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

// ANCHOR: program
use townsquare::{Config, Result, blocking::Client};

fn caller(client: &Client) -> Result<String> {
    let session = client.auth().get_session()?;
    Ok(session.map_or_else(|| "nobody".to_owned(), |session| session.user.email))
}

fn main() -> Result<()> {
    let client = Client::open(Config::new().data_dir(":memory:"))?;
    let user = client.auth().sign_up("  Ann@Town.example ", "correct horse")?;
    println!("signed up: {}", user.email);

    // A server signs users in by create_session. The caller of `client` stays anonymous.
    let session = client.auth().create_session("ann@town.example", "correct horse")?;
    let ann = client.as_user(&session.access_token)?;
    println!("the handle acts for: {}", caller(&ann)?);
    println!("the client acts for: {}", caller(&client)?);

    if let Err(error) = client.auth().create_session("ann@town.example", "wrong horse") {
        println!("{error}");
    }
    if let Err(error) = client.auth().create_session("nobody@town.example", "correct horse") {
        println!("{error}");
    }

    // New tokens replace the old ones: the old access token ends.
    let renewed = client.auth().refresh_session_of(&session.refresh_token)?;
    if let Err(error) = client.as_user(&session.access_token) {
        println!("the old token: {}", error.kind().as_str());
    }

    // Ann forgot her password. The program mails her this token; nobody else must see it.
    let token = client.as_service().auth().create_recovery_token("ann@town.example")?;
    client.auth().recover(&token.unwrap_or_default(), "a new password")?;
    println!("recovered: {}", caller(&client)?);

    // A recovery ends every earlier session, on every device.
    if let Err(error) = client.as_user(&renewed.access_token) {
        println!("the renewed token: {}", error.kind().as_str());
    }

    client.auth().sign_out()?;
    println!("the client acts for: {}", caller(&client)?);
    client.close();
    Ok(())
}
// ANCHOR_END: program

/// Runs the program in the test of the book.
pub(super) fn run() -> Result<()> {
    main()
}
