//! Catalogs from a `file:` URL (DESIGN 6): no key, and one order for all timeframes.

use std::{fs, path::Path, time::Duration};

use townsquare::{
    Client, Config, ErrorKind,
    discovery::{CatalogSource, Selection, Timeframe},
};
use townsquare_tests::{
    TempDir,
    catalog::Catalog,
    fixture::{FIFTEEN_MINUTES, assert_kind, ids, start_time},
    subprocess::in_subprocess,
    temp_dir,
    wait::until,
};

struct FileFixture {
    folder: TempDir,
    clock: townsquare::config::ManualClock,
    client: Client,
}

impl FileFixture {
    async fn on(catalog: Catalog) -> FileFixture {
        let folder = temp_dir();
        catalog.write(&folder.path().join("catalog.json")).expect("a file");
        let clock = townsquare::config::ManualClock::at(start_time());
        let client = Client::open(config(&folder.path().join("catalog.json"), &folder).clock(clock.clock())).await;
        FileFixture { client: client.expect("opens"), folder, clock }
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("catalog.json")
    }

    async fn list(&self) -> Vec<String> {
        let listed = self.client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list");
        listed.iter().map(|app| app.id().to_owned()).collect()
    }
}

fn config(file: &Path, folder: &TempDir) -> Config {
    Config::new().data_dir(folder.path().join("data")).catalog_url(format!("file://{}", file.display()))
}

fn apps(catalog: Catalog) -> Vec<String> {
    catalog.apps().map(|app| app.id).collect()
}

#[tokio::test]
async fn a_file_has_one_order_for_every_timeframe() {
    let catalog = Catalog::of(250);
    let fixture = FileFixture::on(catalog).await;
    for timeframe in Timeframe::ALL {
        let listed = fixture.client.discovery().get_trending_mini_apps(timeframe, 1000).await.expect("a list");
        assert_eq!(ids(&listed), apps(catalog), "{timeframe}");
        assert_eq!(listed[9].engagement().trending_rank, Some(10));
    }
    let stats = fixture.client.discovery().stats().expect("open");
    assert_eq!((stats.source, stats.total, stats.fetched_at), (CatalogSource::File, 250, Some(start_time())));
}

#[test]
fn a_file_needs_no_key() {
    in_subprocess(a_file_needs_no_key, || {
        let folder = temp_dir();
        let file = folder.path().join("catalog.json");
        Catalog::of(60).write(&file).expect("a file");
        for config in [config(&file, &folder), config(&file, &folder).catalog_api_key("")] {
            let client = townsquare::blocking::Client::open(config).expect("opens");
            assert_eq!(client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).expect("a list").len(), 60);
            assert!(!client.discovery().stats().expect("open").has_api_key);
            client.close();
        }
    });
}

#[tokio::test]
async fn the_next_refresh_reads_an_edited_file() {
    let (old, new) = (Catalog::of(60), Catalog::of(61).seeded(3));
    let fixture = FileFixture::on(old).await;
    assert_eq!(fixture.list().await, apps(old));
    new.write(&fixture.file()).expect("a file");
    assert_eq!(fixture.list().await, apps(old), "fresh for fifteen minutes, as any catalog");
    fixture.client.discovery().refresh().await.expect("refreshed");
    assert_eq!(fixture.list().await, apps(new));
    old.write(&fixture.file()).expect("a file");
    fixture.clock.advance(FIFTEEN_MINUTES + Duration::from_secs(1));
    fixture.list().await;
    until("the edit is picked up", || fixture.client.discovery().stats().expect("open").total == 60).await;
    assert_eq!(fixture.list().await, apps(old));
}

#[tokio::test]
async fn an_unreadable_file_keeps_the_old_catalog() {
    let catalog = Catalog::of(60);
    let fixture = FileFixture::on(catalog).await;
    fixture.list().await;
    let whole = fs::read(fixture.file()).expect("a file");
    let breakages: [(&str, &dyn Fn()); 5] = [
        ("cut off", &|| fs::write(fixture.file(), &whole[..whole.len() / 2]).expect("a file")),
        ("empty", &|| fs::write(fixture.file(), "").expect("a file")),
        ("another JSON", &|| fs::write(fixture.file(), "[1, 2]").expect("a file")),
        ("gone", &|| fs::remove_file(fixture.file()).expect("a file")),
        ("a folder", &|| fs::create_dir(fixture.file()).expect("a folder")),
    ];
    for (what, breakage) in breakages {
        breakage();
        let error = assert_kind(ErrorKind::Unavailable, fixture.client.discovery().refresh().await);
        let stats = fixture.client.discovery().stats().expect("open");
        assert_eq!((stats.is_stale, stats.source, stats.total), (true, CatalogSource::File, 60), "{what}");
        assert_eq!(stats.last_error.as_deref(), Some(error.message()), "{what}");
        assert_eq!(fixture.list().await, apps(catalog), "{what}");
    }
    fs::remove_dir(fixture.file()).expect("the folder goes");
    catalog.write(&fixture.file()).expect("a file");
    assert_eq!(fixture.client.discovery().refresh().await.expect("recovers").last_error, None);
}

#[tokio::test]
async fn an_error_names_the_file_and_the_place_in_it() {
    let fixture = FileFixture::on(Catalog::of(60)).await;
    let name = format!("catalog file {}", fixture.file().display());
    for (text, message) in [
        ("{\n \"frames\": [1,,2]}", format!("The {name} is not JSON (line 2, column 15)")),
        ("{\n \"apps\": []}", format!("The {name} has no list of frames (line 2, column 12)")),
        ("{\"frames\": [", format!("The {name} is cut off (line 1, column 12)")),
        ("<html>", format!("The {name} is HTML instead of JSON")),
        ("{\"frames\": [1]}", format!("None of the 1 rows of the {name} describes an app")),
    ] {
        fs::write(fixture.file(), text).expect("a file");
        let error = assert_kind(ErrorKind::Unavailable, fixture.client.discovery().refresh().await);
        assert_eq!(error.message(), message);
    }
}

#[tokio::test]
async fn a_collapsed_file_is_refused_until_forced() {
    let fixture = FileFixture::on(Catalog::of(120)).await;
    fixture.list().await;
    Catalog::of(10).write(&fixture.file()).expect("a file");
    assert_kind(ErrorKind::Unavailable, fixture.client.discovery().refresh().await);
    assert_eq!(fixture.list().await.len(), 120);
    assert_eq!(fixture.client.discovery().force_refresh().await.expect("forced").total, 10);
}

#[tokio::test]
async fn a_file_over_the_size_limit_is_refused() {
    let folder = temp_dir();
    let file = folder.path().join("catalog.json");
    Catalog::of(200).write(&file).expect("a file");
    let client = Client::open(config(&file, &folder).catalog_max_page_bytes(10_000)).await.expect("opens");
    let call = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 5).await;
    let message = format!("The catalog file {} is larger than 10000 bytes", file.display());
    assert_eq!(assert_kind(ErrorKind::Unavailable, call).message(), message);
}

#[tokio::test]
async fn the_network_filter_of_a_file_uses_its_rows() {
    let catalog = Catalog::of(200).with_chains();
    let fixture = FileFixture::on(catalog).await;
    let selection = Selection::first(1000).on_networks(["base"]);
    let listed =
        fixture.client.discovery().get_trending_mini_apps(Timeframe::Hours24, selection).await.expect("a list");
    let expected = catalog.apps().filter(|app| app.networks.is_empty() || app.networks.contains(&"base"));
    assert_eq!(ids(&listed), expected.map(|app| app.id).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_missing_file_is_unavailable_and_named() {
    let folder = temp_dir();
    let client = Client::open(config(&folder.path().join("nowhere.json"), &folder)).await.expect("opens");
    let call = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 5).await;
    assert!(assert_kind(ErrorKind::Unavailable, call).message().contains("nowhere.json"));
}
