//! The files: the buckets, a folder of a bucket, and one file with its preview.

use maud::{Markup, html};
use townsquare::storage::{FileInfo, ListFiles};

use super::{
    Admin,
    page::{Page, ROWS, facts, next_link, number, owner_link, table, text, time},
    page_error::PageError,
    parameters::Parameters,
    preview::{self, Preview},
};

/// The last character in the order of paths.
const LAST_CHARACTER: &str = "\u{10ffff}";

/// How many of [`LAST_CHARACTER`] a path has at most: a path has at most 1,024 bytes.
const MOST_LAST_CHARACTERS: usize = 1_024 / LAST_CHARACTER.len();

/// What a folder has: a file, or another folder.
enum Entry {
    File(FileInfo),
    /// The path, with a slash at its end.
    Folder(String),
}

impl Entry {
    /// The place in the order of paths after which the next entry begins.
    fn end(&self) -> String {
        match self {
            Entry::File(file) => file.path.clone(),
            Entry::Folder(path) => format!("{path}{}", LAST_CHARACTER.repeat(MOST_LAST_CHARACTERS)),
        }
    }
}

pub(super) async fn buckets(admin: &Admin) -> Result<Page, PageError> {
    let rows = admin
        .buckets
        .iter()
        .map(|bucket| vec![html! { a href=(admin.at(&format!("/files/{bucket}"), &[])) { (text(bucket)) } }]);
    Ok(Page::new("Files", "Files", table(&["Bucket"], rows)))
}

pub(super) async fn folder(admin: &Admin, bucket: &str, query: &Parameters) -> Result<Page, PageError> {
    let prefix = query.get("prefix").unwrap_or_default();
    let mut entries = read_folder(admin, bucket, prefix, query.get("after"), ROWS as usize + 1).await?;
    let has_more = entries.len() > ROWS as usize;
    entries.truncate(ROWS as usize);
    let next = entries.last().filter(|_| has_more).map(Entry::end);
    let path = admin.at(&format!("/files/{bucket}"), &[]);
    let rows = entries.iter().map(|entry| match entry {
        Entry::Folder(folder) => {
            let link = admin.at(&format!("/files/{bucket}"), &[("prefix", folder)]);
            let name = folder.strip_prefix(prefix).unwrap_or(folder);
            vec![html! { a href=(link) { (text(name)) } }, html! { "folder" }, html! {}, html! {}, html! {}]
        }
        Entry::File(file) => row(admin, file, prefix),
    });
    let body = html! {
        (places(admin, bucket, prefix))
        (table(&COLUMNS, rows))
        @if let Some(next) = next { (next_link(&path, &[("prefix", prefix), ("after", &next)])) }
    };
    Ok(Page::new("Files", format!("{bucket}/{prefix}"), body))
}

const COLUMNS: [&str; 5] = ["Name", "Type", "Bytes", "Owner", "Updated"];

fn row(admin: &Admin, file: &FileInfo, prefix: &str) -> Vec<Markup> {
    let name = file.path.strip_prefix(prefix).unwrap_or(&file.path);
    vec![
        html! { a href=(address(admin, file)) { (text(name)) } },
        html! { (text(&file.content_type)) },
        html! { (number(file.size)) },
        owner_link(admin, file.owner_id),
        time(file.updated_at),
    ]
}

/// The address of the page of a file.
fn address(admin: &Admin, file: &FileInfo) -> String {
    admin.at("/file", &[("bucket", &file.bucket), ("path", &file.path)])
}

/// The first files with a prefix, and a link to the others.
pub(super) fn short_list(admin: &Admin, bucket: &str, prefix: &str, files: &[FileInfo]) -> Markup {
    let link = admin.at(&format!("/files/{bucket}"), &[("prefix", prefix)]);
    html! {
        (table(&COLUMNS, files.iter().map(|file| row(admin, file, prefix))))
        @if !files.is_empty() { p { a href=(link) { "Folder " (text(bucket)) "/" (text(prefix)) } } }
    }
}

/// The links to a bucket and to the folders of a path.
fn places(admin: &Admin, bucket: &str, path: &str) -> Markup {
    let link = |prefix: &str| admin.at(&format!("/files/{bucket}"), &[("prefix", prefix)]);
    let ends = path.match_indices('/').map(|(place, _)| place + 1);
    let folders = ends.scan(0, |begin, end| {
        let folder = (&path[..end], &path[*begin..end]);
        *begin = end;
        Some(folder)
    });
    html! {
        p.places {
            a href=(admin.at("/files", &[])) { "Files" } " / "
            a href=(link("")) { (text(bucket)) "/" }
            @for (folder, name) in folders { " " a href=(link(folder)) { (text(name)) } }
        }
    }
}

/// The first `most` entries of a folder after the path `after`, in the order of their paths. Each turn reads [`ROWS`] files, and
/// the next one begins after the last entry: the files of a folder are not read one by one.
async fn read_folder(
    admin: &Admin,
    bucket: &str,
    prefix: &str,
    after: Option<&str>,
    most: usize,
) -> Result<Vec<Entry>, PageError> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut after = after.map(str::to_owned);
    loop {
        let page = after.into_iter().fold(ListFiles::with_prefix(prefix).limit(ROWS), ListFiles::after);
        let files = admin.client.storage().list(bucket, page).await?;
        if files.is_empty() {
            return Ok(entries);
        }
        for file in files {
            let rest = file.path.strip_prefix(prefix).unwrap_or(&file.path);
            let entry = match rest.find('/') {
                Some(end) => Entry::Folder(file.path[..prefix.len() + end + 1].to_owned()),
                None => Entry::File(file),
            };
            match (entries.last(), &entry) {
                (Some(Entry::Folder(last)), Entry::Folder(folder)) if last == folder => {}
                _ if entries.len() == most => return Ok(entries),
                _ => entries.push(entry),
            }
        }
        after = entries.last().map(Entry::end);
    }
}

pub(super) async fn file(admin: &Admin, query: &Parameters) -> Result<Page, PageError> {
    let (bucket, path) = (query.required("bucket")?, query.required("path")?);
    let reader = admin.client.storage().reader(bucket, path).await?;
    let file = reader.info().clone();
    let preview = Preview::of(&reader).await?;
    let parameters = [("bucket", bucket), ("path", path)];
    let body = html! {
        (places(admin, bucket, path))
        (facts(&[
            ("Type", html! { (text(&file.content_type)) }),
            ("Bytes", html! { (number(file.size)) }),
            ("Version", html! { code { (text(&file.etag)) } }),
            ("Owner", owner_link(admin, file.owner_id)),
            ("Cached for", html! { (file.cache_control) " s" }),
            ("Updated", time(file.updated_at)),
            ("Metadata", html! {
                @if file.metadata.is_empty() { span.none { "–" } }
                @for (name, value) in &file.metadata { span.item { code { (text(name)) } ": " (text(value)) } " " }
            }),
        ]))
        p { a href=(admin.at("/file/download", &parameters)) { "Download" } }
        h2 { "Preview" }
        @match preview {
            Preview::Text { shown, is_whole } => {
                pre tabindex="0" { (shown) }
                @if !is_whole { p.none { "The first " (number(preview::MOST_TEXT)) " bytes." } }
            }
            Preview::Image(_) if file.size >= preview::MOST_IMAGE => {
                p { a href=(admin.at("/file/image", &parameters)) { "Open the image" } }
            }
            Preview::Image(_) => img src=(admin.at("/file/image", &parameters)) alt="The image of the file";,
            Preview::None => p.none { "No preview: this is neither text nor a PNG, JPEG, GIF or WebP image." }
        }
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    Ok(Page::new("Files", name, body))
}
