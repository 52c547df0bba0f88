//! A tour of townsquare with the embedded default: `cargo run --release --example tour`.
//!
//! With `CATALOG_API_KEY` set it browses the real catalog, else the small sample beside this file. Everything it
//! writes goes into a temporary folder.
#![allow(clippy::print_stdout, reason = "an example talks to whoever runs it")]

use townsquare::{
    CatalogSource, Config, MiniApps, NewFidget, NewSpace, Selection, SpacePatch, Timeframe, blocking::Client,
};

fn main() -> Result<(), townsquare::Error> {
    let folder = std::env::temp_dir().join(format!("townsquare-tour-{}", std::process::id()));
    let mut config = Config::new().data_dir(&folder);
    #[allow(clippy::disallowed_methods, reason = "an example reads its own environment")]
    if std::env::var_os("CATALOG_API_KEY").is_none() {
        config = config.catalog_url(concat!("file://", env!("CARGO_MANIFEST_DIR"), "/samples/catalog.json"));
    }
    let client = Client::open(config)?;
    let result = discover(&client).and_then(|()| build(&client));
    client.close();
    // The tour leaves nothing behind; what cannot be removed is the temporary folder's own business.
    let _ = std::fs::remove_dir_all(&folder);
    result
}

/// What a visitor does: browse and search.
fn discover(client: &Client) -> Result<(), townsquare::Error> {
    let discovery = client.discovery();

    table("Trending today", &discovery.get_trending_mini_apps(Timeframe::Hours24, 8)?);
    table("Games", &discovery.get_mini_apps_by_category(["games"], 5)?);
    let creative = Selection::first(5).in_categories(["music", "art-creativity"]).on_networks(["zora"]);
    table("Music and art on Zora, this week", &discovery.get_trending_mini_apps(Timeframe::Days7, creative)?);
    for query in ["orchard", "chart creme", "standup ketle"] {
        table(&format!("Search: {query}"), &discovery.search_mini_apps(query, 5)?);
    }

    let stats = discovery.stats()?;
    let source = match stats.source {
        CatalogSource::File => "the sample catalog (set CATALOG_API_KEY for the real one)",
        other => other.as_str(),
    };
    let fetched = stats.fetched_at.map_or_else(|| "never".to_owned(), |time| format!("{time:.0}"));
    println!("{} apps from {source}, fetched {fetched}\n", stats.total);
    Ok(())
}

/// What a community does: people sign up, and make spaces that are theirs until they publish them.
fn build(client: &Client) -> Result<(), townsquare::Error> {
    client.auth().on_auth_state_change(|event, session| {
        println!("  event {}: {}", event.as_str(), session.map_or_else(|| "nobody".to_owned(), |held| held.user.email));
    });
    client.auth().sign_up("ann@town.example", "correct horse battery")?;
    if let Err(error) = client.auth().sign_in("ann@town.example", "guessed") {
        println!("A stranger who guesses: {error}");
    }
    let ann = client.auth().sign_in("ann@town.example", "correct horse battery")?;
    let space = client.spaces().create_space(NewSpace::named("Harbor").description("Boards and tides"))?;
    let fidgets = vec![
        NewFidget::of_type("chess").position(vec![0, 0, 4, 4]),
        NewFidget::of_type("tides").position(vec![4, 0, 2, 2]),
    ];
    let fidgets = client.fidgets().create_fidgets(space.id, fidgets)?;
    println!("Space {:?} of {} with {} fidgets", space.name, ann.user.email, fidgets.len());

    client.auth().sign_out()?;
    match client.spaces().get_space(space.id) {
        Ok(_) => println!("  seen by everybody: that would be a bug"),
        Err(error) => println!("  to a visitor, while it is private: {error}"),
    }
    // Trusted code of the host is past the policies.
    client.as_service().spaces().update_space(space.id, SpacePatch::new().published())?;
    for public in client.spaces().get_public_spaces(20, 0)? {
        let owner = public.owner.and_then(|owner| owner.email).unwrap_or_default();
        println!("  published: {} by {owner}", public.space.name);
    }
    Ok(())
}

fn table(title: &str, apps: &MiniApps) {
    println!("{title}");
    println!("  {:>4}  {:<24} {:<16} {:<14} {:>9}  networks", "rank", "name", "category", "author", "followers");
    for app in apps {
        let engagement = app.engagement();
        println!(
            "  {:>4}  {:<24} {:<16} {:<14} {:>9}  {}",
            engagement.trending_rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string()),
            app.name().chars().take(24).collect::<String>(),
            app.category().unwrap_or("-"),
            app.author().map_or("-", |author| author.username),
            engagement.follower_count,
            if app.networks().is_empty() { "any".to_owned() } else { app.networks().collect::<Vec<_>>().join(", ") },
        );
    }
    println!();
}
