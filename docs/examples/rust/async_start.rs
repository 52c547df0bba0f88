//! The first program of the book once more, with futures.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

// ANCHOR: program
use townsquare::{Client, Config, spaces::NewSpace};

#[tokio::main]
async fn main() -> Result<(), townsquare::Error> {
    let client = Client::open(Config::new().data_dir(":memory:").catalog_url("sample:")).await?;
    for app in &client.discovery().search_mini_apps("chess", 3).await? {
        println!("{} {}", app.name(), app.home_url());
    }

    client.auth().sign_up("ann@town.example", "correct horse").await?;
    client.auth().sign_in("ann@town.example", "correct horse").await?;
    client.spaces().create_space(NewSpace::named("Harbor").public()).await?;

    for public in client.spaces().get_public_spaces(20, 0).await? {
        println!("public space: {}", public.space.name);
    }
    client.close().await;
    Ok(())
}
// ANCHOR_END: program

/// Runs the program in the test of the book.
pub(super) fn run() -> townsquare::Result<()> {
    main()
}
