//! A tour of every service of townsquare: mini apps, accounts, spaces, fidgets, files, communities and changes.
//!
//! Start it with `cargo run --release --example tour`. It writes only to a temporary folder, which it deletes. Without
//! `CATALOG_API_KEY` the catalog is the sample of invented apps.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

use std::time::Duration;

use townsquare::{
    Config, Json, Result,
    blocking::Client,
    communities::CommunityPatch,
    discovery::{CatalogSource, MiniApps, Selection, Timeframe},
    realtime::ChangeRequest,
    spaces::{NewFidget, NewSpace, SpacePatch},
    storage::{ListFiles, SpacePath, UploadOptions},
};

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("townsquare-tour-{}", std::process::id()));
    let mut config = Config::new().data_dir(&folder);
    #[allow(clippy::disallowed_methods, reason = "an example reads its own environment")]
    if std::env::var_os("CATALOG_API_KEY").is_none() {
        config = config.catalog_url("sample:");
    }

    // Opening creates the folder, the SQLite file in it, and its tables.
    let client = Client::open(config)?;
    let result = browse_mini_apps(&client)
        .and_then(|()| make_a_space(&client))
        .and_then(|()| publish_config(&client))
        .and_then(|()| follow_changes(&client));

    // Closing waits for every thread of the client, so the folder can be deleted afterwards.
    client.close();
    let _ = std::fs::remove_dir_all(&folder);
    result
}

/// Discovery needs no account.
fn browse_mini_apps(client: &Client) -> Result<()> {
    let discovery = client.discovery();

    print_apps("Trending in the last 24 hours", &discovery.get_trending_mini_apps(Timeframe::Hours24, 8)?);
    print_apps("Category games", &discovery.get_mini_apps_by_category(["games"], 5)?);

    // A selection combines a limit, categories and networks.
    let selection = Selection::first(5).in_categories(["music", "art-creativity"]).on_networks(["zora"]);
    print_apps("Music and art on Zora, last 7 days", &discovery.get_trending_mini_apps(Timeframe::Days7, selection)?);

    // Search folds accents and corrects typing errors, as in the second and third query.
    for query in ["orchard", "chart creme", "standup ketle"] {
        print_apps(&format!("Search for {query:?}"), &discovery.search_mini_apps(query, 5)?);
    }

    let stats = discovery.stats()?;
    let source = match stats.source {
        CatalogSource::File => "the sample of invented apps (set CATALOG_API_KEY to use the upstream API)",
        other => other.as_str(),
    };
    let fetched = stats.fetched_at.map_or_else(|| "never".to_owned(), |time| format!("{time:.0}"));
    println!("The catalog has {} mini apps from {source}, fetched {fetched}.\n", stats.total);
    Ok(())
}

/// A user signs up, signs in and creates a space with fidgets. The service publishes it.
fn make_a_space(client: &Client) -> Result<()> {
    println!("Accounts and spaces");
    // The callback runs on a thread of the library. Its lines may appear between the others.
    let events = client.auth().on_auth_state_change(|event, session| {
        let caller = session.map_or_else(|| "anonymous".to_owned(), |session| session.user.email);
        println!("  [callback] {}, caller: {caller}", event.as_str());
    });

    client.auth().sign_up("ann@town.example", "correct horse battery")?;
    if let Err(error) = client.auth().sign_in("ann@town.example", "wrong password") {
        println!("  Signing in with a wrong password returns: {error}");
    }

    // From here on the client acts for the user.
    let session = client.auth().sign_in("ann@town.example", "correct horse battery")?;
    let space = client.spaces().create_space(NewSpace::named("Harbor").description("Boards and tides"))?;
    let fidgets = vec![
        NewFidget::of_type("chess").position(vec![0, 0, 4, 4]),
        NewFidget::of_type("tides").position(vec![4, 0, 2, 2]),
    ];
    let fidgets = client.fidgets().create_fidgets(space.id, fidgets)?;
    println!("  {} created the space Harbor with {} fidgets.", session.user.email, fidgets.len());

    // Everyone may read the files of a space; its owner writes them.
    let tab = SpacePath::tab(space.id, "Home")?;
    let content = r#"{"layout": ["chess", "tides"]}"#;
    client.storage().upload(tab.bucket(), tab.path(), content, UploadOptions::new())?;
    for file in client.storage().list("spaces", ListFiles::with_prefix(space.id.to_string()))? {
        println!("  File {}/{}: {} bytes, {}.", file.bucket, file.path, file.size, file.content_type);
    }

    // From here on the client is anonymous. A private space is visible to its owner only.
    client.auth().sign_out()?;
    if let Err(error) = client.spaces().get_space(space.id) {
        println!("  An anonymous caller who reads the private space gets: {error}");
    }
    if let Err(error) = client.storage().upload(tab.bucket(), tab.path(), "{}", UploadOptions::new()) {
        println!("  An anonymous caller who overwrites the file gets: {error}");
    }

    // The service is trusted code: no policy restricts it.
    client.as_service().spaces().update_space(space.id, SpacePatch::new().published())?;
    for public in client.spaces().get_public_spaces(20, 0)? {
        let owner = public.owner.and_then(|owner| owner.email).unwrap_or_default();
        println!("  Public space: {:?}, owner {owner}", public.space.name);
    }
    events.unsubscribe();
    println!();
    Ok(())
}

/// The service saves the configuration of a community. Every caller may read it, because it is published.
fn publish_config(client: &Client) -> Result<()> {
    println!("Communities");
    let json = |text: &str| Json::String(text.to_owned());
    let patch = CommunityPatch::with_required(json("Harbor blue"), json("logo.svg"), json("Harbor"), json("chess"));
    client.as_service().communities().save_community_config("harbor", patch)?;
    if let Some(config) = client.communities().get_active_community_config("harbor")? {
        println!("  The brand of community harbor is {}.", config.brand);
    }
    Ok(())
}

/// A subscriber gets the changes of the rows that it may see, in the order of their commits.
fn follow_changes(client: &Client) -> Result<()> {
    println!("\nChanges");
    // The caller is anonymous, so the stream has public spaces only.
    let mut changes = client.realtime().changes(ChangeRequest::table("spaces"))?;
    let spaces = client.as_service();
    let spaces = spaces.spaces();
    let hidden = spaces.create_space(NewSpace::named("Pier"))?;
    spaces.create_space(NewSpace::named("Lighthouse").public())?;
    spaces.update_space(hidden.id, SpacePatch::new().published())?;
    for _ in 0..2 {
        let Some(change) = changes.next_within(Duration::from_secs(10)).transpose()? else { break };
        let name = change.new.as_ref().and_then(|row| row.get("name")).and_then(Json::as_str).unwrap_or_default();
        println!("  {} of the space {name:?} arrived.", change.event_type);
    }
    Ok(())
}

fn print_apps(title: &str, apps: &MiniApps) {
    println!("{title}");
    println!("  {:>4}  {:<24} {:<16} {:<14} {:>9}  networks", "rank", "name", "category", "author", "followers");
    for app in apps {
        let engagement = app.engagement();
        let rank = engagement.trending_rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
        let networks: Vec<_> = app.networks().collect();
        println!(
            "  {rank:>4}  {:<24} {:<16} {:<14} {:>9}  {}",
            app.name().chars().take(24).collect::<String>(),
            app.category().unwrap_or("-"),
            app.author().map_or("-", |author| author.username),
            engagement.follower_count,
            if networks.is_empty() { "any".to_owned() } else { networks.join(", ") },
        );
    }
    println!();
}
