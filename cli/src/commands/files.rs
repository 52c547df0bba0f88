//! `files`: lists, reads, writes, deletes, signs and synchronizes files.

mod sync;

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use townsquare::{
    Error,
    blocking::Client,
    storage::{FileInfo, UploadOptions, UrlMethod, UrlOptions},
};

use crate::{
    context::Context,
    exit_code,
    failure::Failure,
    interrupt,
    interruptible_input::InterruptibleInput,
    output::note,
    progress::{Progress, Unit},
    settings::IfMissing,
};

/// The number of files that are read and listed at a time.
pub(crate) const PAGE: u32 = 1_000;

/// List, read, write, delete, sign and synchronize files. A file is BUCKET/PATH, such as assets/images/cat.png.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: FilesCommand,
}

#[derive(Debug, Subcommand)]
enum FilesCommand {
    /// List files by path. JSON: `files`.
    Ls {
        /// The bucket, or BUCKET/PREFIX.
        #[arg(value_name = "BUCKET[/PREFIX]", value_parser = place)]
        prefix: Place,
        /// Number of files. Default: all.
        #[arg(long, short = 'n', value_name = "NUMBER")]
        limit: Option<usize>,
    },
    /// Write a file to the standard output, or to a file of this machine. JSON, with TARGET: what is known about the file.
    Get {
        #[arg(value_name = "BUCKET/PATH", value_parser = place)]
        file: Place,
        /// The file to write; - is the standard output.
        #[arg(default_value = "-")]
        target: PathBuf,
    },
    /// Store a file of this machine, or the standard input. JSON: what is known about the file.
    Put {
        /// The file to read; - is the standard input.
        source: PathBuf,
        #[arg(value_name = "BUCKET/PATH", value_parser = place)]
        file: Place,
        /// The content type. Default: by the name and the first bytes.
        #[arg(long = "type", value_name = "TYPE")]
        content_type: Option<String>,
        /// Seconds for which caches may keep the file.
        #[arg(long, default_value_t = 3_600, value_name = "SECONDS")]
        cache_control: u32,
        /// Fail if there is a file at the path.
        #[arg(long)]
        new: bool,
    },
    /// Delete a file. Asks first. JSON: `deleted`, the number of files.
    Rm {
        #[arg(value_name = "BUCKET/PATH", value_parser = place)]
        file: Place,
        /// Delete every file that begins with the path.
        #[arg(long, short)]
        recursive: bool,
    },
    /// Print a signed URL, without scheme and host: put the address of `serve` and /files before it. JSON: `url`.
    Sign {
        #[arg(value_name = "BUCKET/PATH", value_parser = place)]
        file: Place,
        /// What the URL is for.
        #[arg(long, value_enum, default_value_t = Method::Get)]
        method: Method,
        /// Seconds until the URL ends.
        #[arg(long, default_value_t = 3_600, value_name = "SECONDS")]
        expires: u64,
        /// The largest upload, in bytes.
        #[arg(long, value_name = "BYTES")]
        max_size: Option<u64>,
    },
    /// Make a bucket equal to a folder, or with --down a folder equal to a bucket. Files with the same bytes are left alone.
    ///
    /// Nothing is deleted without --delete. JSON: `copied`, `deleted` (their paths), `unchanged` (a number) and `dry_run`.
    Sync(sync::Arguments),
    /// Write every file of every bucket to a folder, at BUCKET/PATH. JSON: `files`, their number.
    Export {
        /// The folder.
        #[arg(value_name = "FOLDER")]
        target: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Method {
    Get,
    Put,
}

/// A path in a bucket.
#[derive(Debug, Clone)]
struct Place {
    bucket: String,
    path: String,
}

fn place(text: &str) -> Result<Place, &'static str> {
    let (bucket, path) = text.split_once('/').unwrap_or((text, ""));
    if bucket.is_empty() {
        return Err("it is BUCKET/PATH, such as assets/images/cat.png");
    }
    Ok(Place { bucket: bucket.to_owned(), path: path.to_owned() })
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    if let FilesCommand::Get { .. } | FilesCommand::Put { .. } | FilesCommand::Sync(_) | FilesCommand::Export { .. } =
        arguments.command
    {
        interrupt::defer();
    }
    let if_missing = match &arguments.command {
        FilesCommand::Sync(sync) if sync.dry_run => IfMissing::FailReadOnly,
        FilesCommand::Put { .. } | FilesCommand::Rm { .. } | FilesCommand::Sync(_) => IfMissing::Fail,
        FilesCommand::Ls { .. }
        | FilesCommand::Get { .. }
        | FilesCommand::Sign { .. }
        | FilesCommand::Export { .. } => IfMissing::FailReadOnly,
    };
    context.with_client(if_missing, |client| match &arguments.command {
        FilesCommand::Ls { prefix, limit } => list(client, prefix, limit.unwrap_or(usize::MAX), context),
        FilesCommand::Get { file, target } if target == Path::new("-") => write_out(client, file, context),
        FilesCommand::Get { file, target } => {
            let progress = Progress::new(&context.output, &file.path, Unit::Bytes);
            let show = |done, all| progress.show(done, all);
            let info = client.storage().download_to(&file.bucket, &file.path, target, show)?;
            drop(progress);
            write(&info, context)
        }
        FilesCommand::Put { source, file, content_type, cache_control, new } => {
            let options = UploadOptions::new().cache_control(*cache_control).upsert(!new);
            let options = content_type.iter().fold(options, UploadOptions::content_type);
            let info = put(client, source, file, options, context)?;
            write(&info, context)
        }
        FilesCommand::Rm { file, recursive } => remove(client, file, *recursive, context),
        FilesCommand::Sign { file, method, expires, max_size } => {
            let method = match method {
                Method::Get => UrlMethod::Get,
                Method::Put => UrlMethod::Put,
            };
            let options = UrlOptions::new(Duration::from_secs(*expires));
            let options = max_size.iter().copied().fold(options, UrlOptions::max_size);
            let url = client.storage().signed_url(&file.bucket, &file.path, method, options)?;
            if context.output.is_json {
                return context.output.json(&json!({ "url": url }));
            }
            context.output.line(&url)
        }
        FilesCommand::Sync(arguments) => sync::run(client, arguments, context),
        FilesCommand::Export { target } => {
            let progress = Progress::new(&context.output, "files", Unit::Items);
            let files = client.storage().export_files(target, |done, all| progress.show(done, all))?;
            drop(progress);
            if context.output.is_json {
                return context.output.json(&json!({ "files": files }));
            }
            note(&format!("{files} files are in {}.", target.display()));
            Ok(())
        }
    })
}

/// A bucket, and whether its files belong to the user whose id or identity key is the first part of the path.
pub(crate) struct Bucket {
    pub(crate) name: String,
    pub(crate) is_private: bool,
}

/// The buckets of the library, and those of the option `buckets`.
pub(crate) fn buckets(context: &Context) -> Result<Vec<Bucket>, Failure> {
    let declared = context.settings()?.get("buckets").map(|setting| setting.value.to_string_lossy().into_owned());
    let declared = declared.unwrap_or_default();
    let declared = declared.split(',').filter_map(|bucket| bucket.split_once('='));
    let built_in = [("spaces", "spaces"), ("private", "private"), ("assets", "public")];
    let bucket =
        |(name, access): (&str, &str)| Bucket { name: name.trim().to_owned(), is_private: access.trim() == "private" };
    Ok(built_in.into_iter().chain(declared).map(bucket).collect())
}

fn list(client: &Client, place: &Place, limit: usize, context: &Context) -> Result<(), Failure> {
    let mut files = client.storage().iter(&place.bucket, &place.path, PAGE).take(limit);
    let row = |file: &FileInfo| {
        let updated = format!("{:.0}", file.updated_at);
        vec![file.path.clone(), file.size.to_string(), file.content_type.clone(), updated]
    };
    let mut list = context.output.list("files", &["path", "bytes", "type", "updated"]);
    loop {
        let page = files.by_ref().take(PAGE as usize).collect::<Result<Vec<FileInfo>, Error>>()?;
        if page.is_empty() {
            return list.end();
        }
        list.page(&page, row)?;
    }
}

fn write(info: &FileInfo, context: &Context) -> Result<(), Failure> {
    if context.output.is_json {
        return context.output.json(&json!(info));
    }
    note(&format!("{}/{}: {} bytes, {}.", info.bucket, info.path, info.size, info.content_type));
    Ok(())
}

/// Writes a file to the standard output.
fn write_out(client: &Client, file: &Place, context: &Context) -> Result<(), Failure> {
    let mut reader = client.storage().reader(&file.bucket, &file.path)?;
    let mut chunk = vec![0; 64 * 1024];
    loop {
        match reader.read(&mut chunk).map_err(of_reader)? {
            0 => return Ok(()),
            read => context.output.bytes(&chunk[..read])?,
        }
    }
}

/// The failure of a reader of the library.
fn of_reader(error: io::Error) -> Failure {
    match error.downcast::<Error>() {
        Ok(error) => error.into(),
        Err(error) => Failure::new(exit_code::FAILURE, error.to_string(), "Try again."),
    }
}

fn put(
    client: &Client,
    source: &Path,
    file: &Place,
    options: UploadOptions,
    context: &Context,
) -> Result<FileInfo, Failure> {
    let storage = client.storage();
    if source == Path::new("-") {
        let input = InterruptibleInput::start().map_err(|error| Failure::of_file(source, &error))?;
        let stored = storage.upload_reader(&file.bucket, &file.path, input, options);
        return stored.map_err(|error| match interrupt::is_requested() {
            true => Failure::interrupted("Nothing was stored. Run the same command again."),
            false => error.into(),
        });
    }
    std::fs::metadata(source).map_err(|error| Failure::of_file(source, &error))?;
    let progress = Progress::new(&context.output, &file.path, Unit::Bytes);
    let show = |done, all| progress.show(done, all);
    Ok(storage.upload_from(&file.bucket, &file.path, source, options, show)?)
}

fn remove(client: &Client, file: &Place, is_recursive: bool, context: &Context) -> Result<(), Failure> {
    let name = format!("{}/{}", file.bucket, file.path);
    if is_recursive {
        context.confirm(&format!("Delete every file that begins with {name}?"))?;
    } else {
        client.storage().stat(&file.bucket, &file.path).map_err(|error| Failure::from(error).at(&name))?;
        context.confirm(&format!("Delete the file {name}?"))?;
    }
    let deleted = if is_recursive {
        client.storage().delete_prefix(&file.bucket, &file.path)?
    } else {
        client.storage().delete(&file.bucket, &file.path)?;
        1
    };
    if context.output.is_json {
        return context.output.json(&json!({ "deleted": deleted }));
    }
    note(&format!("{deleted} deleted."));
    Ok(())
}
