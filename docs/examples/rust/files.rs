//! Files: upload, download and list under policies, an overwrite that notices others, and a signed URL.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

// ANCHOR: program
use std::time::Duration;

use townsquare::{
    Config, Result,
    blocking::Client,
    spaces::NewSpace,
    storage::{ListFiles, UploadOptions, UrlMethod},
};

fn main() -> Result<()> {
    let client = Client::open(Config::new().data_dir(":memory:"))?;
    let user = client.auth().sign_up("ann@town.example", "correct horse")?;
    client.auth().sign_in("ann@town.example", "correct horse")?;
    let space = client.spaces().create_space(NewSpace::named("Harbor").public())?;
    let strangers = client.as_anonymous();

    // The path begins with the id of Ann's space, so she may write there. Everybody may read it.
    let path = format!("{}/assets/tides.json", space.id);
    let info = client.storage().upload("spaces", &path, r#"{"high": "06:12"}"#, UploadOptions::new())?;
    println!("{} bytes, {}", info.size, info.content_type);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    println!("{}", text(&strangers.storage().download("spaces", &path)?));
    println!("{}", text(&strangers.storage().download_range("spaces", &path, 1..7)?));

    // A private file exists for its owner alone.
    let homebase = format!("{}/homebase", user.id);
    client.storage().upload("private", &homebase, "{}", UploadOptions::new())?;
    if let Err(error) = strangers.storage().download("private", &homebase) {
        println!("{error}");
    }
    if let Err(error) = strangers.storage().upload("spaces", &path, "mine now", UploadOptions::new()) {
        println!("{error}");
    }

    // Somebody else writes first: the etag that we read is not the current one.
    client.storage().upload("spaces", &path, r#"{"high": "06:40"}"#, UploadOptions::new())?;
    let unchanged = UploadOptions::new().if_match(&info.etag);
    if let Err(error) = client.storage().upload("spaces", &path, r#"{"high": "06:15"}"#, unchanged) {
        println!("status {}", error.status());
    }

    // A signed URL acts for Ann, for one file and one method. A browser may use it.
    let url = client.storage().signed_url("private", &homebase, UrlMethod::Get, Duration::from_secs(60))?;
    println!("by URL: {}", client.storage().handle_file("GET", &url, &[], "")?.status);
    let bare = url.split('?').next().unwrap_or_default();
    println!("without the signature: {}", client.storage().handle_file("GET", bare, &[], "")?.status);

    let folder = format!("{}/", space.id);
    for file in client.storage().list("spaces", ListFiles::with_prefix(&folder))? {
        println!("file: {}", file.path.trim_start_matches(&folder));
    }
    println!("deleted: {}", client.storage().delete_prefix("spaces", &format!("{folder}assets/"))?);
    client.close();
    Ok(())
}
// ANCHOR_END: program

/// Runs the program in the test of the book.
pub(super) fn run() -> Result<()> {
    main()
}
