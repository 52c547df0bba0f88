//! Discovery: trending apps, filters, search with a typing error, similar apps and categories.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

// ANCHOR: program
use townsquare::{
    Config,
    blocking::Client,
    discovery::{Selection, Timeframe},
};

fn main() -> Result<(), townsquare::Error> {
    let client = Client::open(Config::new().data_dir(":memory:").catalog_url("sample:"))?;
    let discovery = client.discovery();

    for app in &discovery.get_trending_mini_apps(Timeframe::Hours24, 3)? {
        println!("trending: {} {}", app.engagement().trending_rank.unwrap_or_default(), app.name());
    }

    let on_base = Selection::first(2).on_networks(["base"]);
    for app in &discovery.get_mini_apps_by_category(["games"], on_base)? {
        println!("game on base: {}", app.name());
    }

    // The first word has the British spelling, and the last one is not finished: the app is "Harbor Chess".
    for app in &discovery.search_mini_apps("harbour ches", 1)? {
        println!("found: {} {}", app.name(), app.home_url());
        for similar in &discovery.get_similar_mini_apps(app.id(), 2)? {
            println!("similar: {}", similar.name());
        }
    }

    for category in discovery.categories(Selection::default())?.iter().take(3) {
        println!("category: {} {}", category.name, category.count);
    }

    let stats = discovery.stats()?;
    println!("catalog: {} apps, {}", stats.total, if stats.is_stale { "stale" } else { "fresh" });

    if let Err(error) = discovery.search_mini_apps("chess", 5000) {
        println!("{error}");
    }
    client.close();
    Ok(())
}
// ANCHOR_END: program

/// Runs the program in the test of the book.
pub(super) fn run() -> townsquare::Result<()> {
    main()
}
