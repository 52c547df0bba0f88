//! The tar archive of a backup, which is one object of a store.
//!
//! The first entry says what the archive is: JSON with `format`, `townsquare` and `made_at`. Then come `townsquare.db` and
//! `townsquare.db.files/BUCKET/PATH`. The last entry is the manifest: for each entry between, a line of JSON with `name`, `size` and
//! `blake3`, in their order. `tar` unpacks it, too.
//!
//! Invariant: memory does not grow with the files or their number. An archive with anything else in it, or with other bytes than the
//! manifest says, is refused.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead as _, BufReader, BufWriter, Read, Write},
    path::{Component, Path, PathBuf},
};

use blake3::Hasher;
use jiff::Timestamp;
use serde_json::{Value, json};
use tar::{Archive, Builder, Entry, Header};

use super::files_of;
use crate::{exit_code, failure::Failure};

/// The form of the archive.
const FORMAT: u64 = 1;

/// The first entry.
const HEAD: &str = "townsquare-backup.json";

/// The copy of the database, and the name of its file where an archive is made or unpacked.
pub(super) const DATABASE: &str = "townsquare.db";

/// The folder of the copy's files.
const FILES: &str = "townsquare.db.files";

/// The last entry, and the file with its text.
const MANIFEST: &str = "townsquare-manifest.jsonl";

/// The size of a block. An archive ends with two blocks of zeros.
const BLOCK: u64 = 512;

/// The most bytes of the name of an entry, and of the first entry.
const MOST_BYTES: u64 = 4_096;

const CHUNK: usize = 1 << 16;

/// The bytes of the files of a copy, and the most bytes of its archive.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) files: u64,
    pub(super) archive: u64,
}

/// Measures a copy: `townsquare.db` and its files in `folder`.
pub(super) fn measure(folder: &Path) -> Result<Sizes, Failure> {
    // The first entry, the header of the manifest, and the end.
    let mut sizes = Sizes { files: 0, archive: 16 * BLOCK };
    each_file(folder, &mut |name, path| {
        let size = fs::metadata(path).map_err(|error| Failure::of_file(path, &error))?.len();
        sizes.files += size;
        // The headers of the entry and of a long name, the name there and in the manifest, and the rest of the last block.
        sizes.archive += size + 8 * BLOCK + 8 * name.len() as u64;
        Ok(())
    })?;
    Ok(sizes)
}

/// Writes the archive of the copy in `folder`. `done` gets the number of bytes of each read.
pub(super) fn pack(
    folder: &Path,
    time: Timestamp,
    out: &mut dyn Write,
    done: &mut dyn FnMut(u64),
) -> Result<(), Failure> {
    let manifest = folder.join(MANIFEST);
    let mut lines = BufWriter::new(new_file(&manifest).map_err(|error| Failure::of_file(&manifest, &error))?);
    let mut archive = Builder::new(out);
    let head = json!({ "format": FORMAT, "townsquare": env!("CARGO_PKG_VERSION"), "made_at": time.to_string() });
    let head = format!("{head}\n");
    let written = archive.append_data(&mut header(head.len() as u64, time), HEAD, head.as_bytes());
    written.map_err(|error| Failure::of_file(folder, &error))?;
    each_file(folder, &mut |name, path| {
        let failed = |error: &io::Error| Failure::of_file(path, error);
        let file = File::open(path).map_err(|error| failed(&error))?;
        let size = file.metadata().map_err(|error| failed(&error))?.len();
        let mut reader = Hashing { file: file.take(size), hasher: Hasher::new(), read: 0, done };
        archive.append_data(&mut header(size, time), name, &mut reader).map_err(|error| failed(&error))?;
        if reader.read != size {
            return Err(failed(&io::Error::other("the file became shorter")));
        }
        lines
            .write_all(line(name, size, &reader.hasher).as_bytes())
            .map_err(|error| Failure::of_file(&manifest, &error))
    })?;
    let failed = |error: io::Error| Failure::of_file(&manifest, &error);
    drop(lines.into_inner().map_err(|error| failed(error.into_error()))?);
    let lines = File::open(&manifest).map_err(failed)?;
    let size = lines.metadata().map_err(failed)?.len();
    archive.append_data(&mut header(size, time), MANIFEST, lines).map_err(failed)?;
    archive.finish().map_err(failed)
}

/// Reads a file, and computes its digest.
struct Hashing<'d> {
    file: io::Take<File>,
    hasher: Hasher,
    read: u64,
    done: &'d mut dyn FnMut(u64),
}

impl Read for Hashing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.read += count as u64;
        (self.done)(count as u64);
        Ok(count)
    }
}

/// No owner, no group and no mode of the host.
fn header(size: u64, time: Timestamp) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mode(0o600);
    header.set_mtime(u64::try_from(time.as_second()).unwrap_or_default());
    header
}

fn line(name: &str, size: u64, hasher: &Hasher) -> String {
    format!("{}\n", json!({ "name": name, "size": size, "blake3": hasher.finalize().to_hex().as_str() }))
}

/// Calls `visit` with the name in the archive and the path of each file of a copy, in the order of the archive.
fn each_file(folder: &Path, visit: &mut dyn FnMut(&str, &Path) -> Result<(), Failure>) -> Result<(), Failure> {
    let database = folder.join(DATABASE);
    visit(DATABASE, &database)?;
    let files = files_of(&database);
    let has_files = files.try_exists().map_err(|error| Failure::of_file(&files, &error))?;
    if has_files { each_below(&files, FILES, visit) } else { Ok(()) }
}

fn each_below(
    folder: &Path,
    name: &str,
    visit: &mut dyn FnMut(&str, &Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let read = || {
        let entries = fs::read_dir(folder)?.map(|entry| entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))));
        entries.collect::<io::Result<Vec<_>>>()
    };
    let mut entries = read().map_err(|error| Failure::of_file(folder, &error))?;
    entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    for (path, kind) in entries {
        let last = path.file_name().and_then(|last| last.to_str());
        let last = last.ok_or_else(|| Failure::of_file(&path, &io::Error::other("the name is not UTF-8")))?;
        let name = format!("{name}/{last}");
        if kind.is_dir() { each_below(&path, &name, visit)? } else { visit(&name, &path)? }
    }
    Ok(())
}

fn damaged(why: impl std::fmt::Display) -> Failure {
    let sentence = format!("The backup is damaged, or is no backup of townsquare: {why}");
    Failure::new(exit_code::FAILURE, sentence, "Restore another copy. Nothing is installed.")
}

/// What an entry of an archive may be, in the order of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Head,
    Database,
    File,
    Nothing,
}

/// Unpacks an archive of `size` bytes into the empty folder `folder`, and checks all of it. `source` is read to its end.
///
/// # Errors
/// [`exit_code::FAILURE`] if the archive is not as [`pack`] makes it; those of the host. The caller removes the folder.
pub(super) fn unpack(source: &mut dyn Read, size: u64, folder: &Path) -> Result<(), Failure> {
    let manifest = folder.join(MANIFEST);
    let mut lines = BufWriter::new(new_file(&manifest).map_err(|error| Failure::of_file(&manifest, &error))?);
    let mut archive = Archive::new(source);
    let (mut next, mut end, mut long_name) = (Next::Head, 0, None);
    for entry in archive.entries().map_err(damaged)?.raw(true) {
        let mut entry = entry.map_err(damaged)?;
        let padded = entry.size().checked_next_multiple_of(BLOCK);
        end = padded.and_then(|size| size.checked_add(entry.raw_file_position())).ok_or_else(|| damaged("a size"))?;
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() && long_name.is_none() {
            long_name = Some(read_text(&mut entry)?.trim_end_matches('\0').to_owned());
            continue;
        }
        if !kind.is_file() {
            return Err(damaged("an entry is neither a file nor a long name"));
        }
        let name = match long_name.take() {
            Some(name) => name,
            None => String::from_utf8(entry.path_bytes().into_owned()).map_err(|_| damaged("a name is not UTF-8"))?,
        };
        next = match (next, &*name) {
            (Next::Head, HEAD) => {
                check_head(&read_text(&mut entry)?)?;
                Next::Database
            }
            (Next::Head, _) => return Err(damaged(format!("the first entry is not {HEAD}"))),
            (Next::Database, DATABASE) => {
                unpack_file(&mut entry, &name, &folder.join(DATABASE), &mut lines, &manifest)?;
                Next::File
            }
            (Next::File, MANIFEST) => {
                lines.flush().map_err(|error| Failure::of_file(&manifest, &error))?;
                compare(&mut entry, &manifest)?;
                Next::Nothing
            }
            (Next::File, name) => {
                let path =
                    place(folder, name).ok_or_else(|| damaged(format!("{name:?} is no name of a file of it")))?;
                unpack_file(&mut entry, name, &path, &mut lines, &manifest)?;
                Next::File
            }
            (Next::Database | Next::Nothing, name) => return Err(damaged(format!("{name:?} is not expected there"))),
        };
    }
    if next != Next::Nothing || long_name.is_some() {
        return Err(damaged("it ends before its manifest"));
    }
    // The first block of zeros has been read.
    let mut rest = Vec::new();
    archive.into_inner().take(2 * BLOCK).read_to_end(&mut rest).map_err(damaged)?;
    if size != end + 2 * BLOCK || rest.len() as u64 != BLOCK || rest.iter().any(|byte| *byte != 0) {
        return Err(damaged("it does not end after its manifest"));
    }
    Ok(())
}

/// Reads a short entry.
fn read_text(entry: &mut Entry<'_, impl Read>) -> Result<String, Failure> {
    if entry.size() > MOST_BYTES {
        return Err(damaged("an entry is too long"));
    }
    let mut text = String::new();
    let size = entry.read_to_string(&mut text).map_err(damaged)?;
    if size as u64 == entry.size() { Ok(text) } else { Err(damaged("it is cut off")) }
}

fn check_head(text: &str) -> Result<(), Failure> {
    let head: Value = serde_json::from_str(text).map_err(|_| damaged(format!("{HEAD} is not JSON")))?;
    match head["format"].as_u64() {
        Some(FORMAT) => Ok(()),
        Some(format) if format > FORMAT => Err(Failure::usage(
            format!("The backup has the format {format}, and this version of townsquare reads {FORMAT}"),
            "Restore it with a newer version.",
        )),
        _ => Err(damaged(format!("{HEAD} has no format"))),
    }
}

/// The path of a file of the copy. `None` if the name is that of no such file.
fn place(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut path = folder.join(FILES);
    let below = name.strip_prefix(FILES)?.strip_prefix('/')?;
    for part in below.split('/') {
        let mut components = Path::new(part).components();
        let is_name = matches!(components.next(), Some(Component::Normal(name)) if name == part);
        if !is_name || components.next().is_some() || part.contains('\0') {
            return None;
        }
        path.push(part);
    }
    Some(path)
}

fn unpack_file(
    entry: &mut Entry<'_, impl Read>,
    name: &str,
    path: &Path,
    lines: &mut impl Write,
    manifest: &Path,
) -> Result<(), Failure> {
    let size = entry.size();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            damaged(format!("{name:?} is in it twice, or is also a folder"))
        }
        _ => Failure::of_file(path, &error),
    };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    let mut file = new_file(path).map_err(failed)?;
    let (mut hasher, mut buffer, mut written) = (Hasher::new(), vec![0; CHUNK], 0);
    loop {
        let count = entry.read(&mut buffer).map_err(damaged)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        file.write_all(&buffer[..count]).map_err(failed)?;
        written += count as u64;
    }
    if written != size {
        return Err(damaged(format!("it is cut off in {name:?}")));
    }
    lines.write_all(line(name, size, &hasher).as_bytes()).map_err(|error| Failure::of_file(manifest, &error))
}

/// Compares the manifest in the archive with the lines of the entries.
fn compare(entry: &mut Entry<'_, impl Read>, manifest: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::of_file(manifest, &error);
    let mut lines = BufReader::new(File::open(manifest).map_err(failed)?);
    let (mut line, mut expected) = (String::new(), Vec::new());
    loop {
        line.clear();
        if lines.read_line(&mut line).map_err(failed)? == 0 {
            break;
        }
        expected.resize(line.len(), 0);
        if entry.read_exact(&mut expected).is_err() || expected != line.as_bytes() {
            let found: Value = serde_json::from_str(&line).unwrap_or_default();
            return Err(damaged(format!("{} is not as the manifest says", found["name"])));
        }
    }
    match entry.read(&mut [0]) {
        Ok(0) => Ok(()),
        _ => Err(damaged("a file of the manifest is missing")),
    }
}

/// Makes a file that only its owner may read.
fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
