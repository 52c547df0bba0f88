//! The first program of the book: find mini apps, sign up, and make a space.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

// ANCHOR: program
use townsquare::{Config, blocking::Client, spaces::NewSpace};

fn main() -> Result<(), townsquare::Error> {
    let client = Client::open(Config::new().data_dir(":memory:").catalog_url("sample:"))?;
    for app in &client.discovery().search_mini_apps("chess", 3)? {
        println!("{} {}", app.name(), app.home_url());
    }

    client.auth().sign_up("ann@town.example", "correct horse")?;
    client.auth().sign_in("ann@town.example", "correct horse")?; // from here on the client acts for Ann
    client.spaces().create_space(NewSpace::named("Harbor").public())?;

    for public in client.spaces().get_public_spaces(20, 0)? {
        println!("public space: {}", public.space.name);
    }
    client.close();
    Ok(())
}
// ANCHOR_END: program

/// Runs the program in the test of the book.
pub(super) fn run() -> townsquare::Result<()> {
    main()
}
