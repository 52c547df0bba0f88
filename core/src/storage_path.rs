//! Paths of files: the rule that every path keeps, and the paths of SPEC 2.8.
//!
//! Invariant: a [`FilePath`] is valid in every file store. It is never changed to become valid: text that breaks the rule
//! is refused, so that one file has one path.

use std::fmt;

use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark, is_nfc};
use uuid::Uuid;

use crate::error::{Error, Result};

/// The largest length of a path, in bytes.
const MAX_PATH: usize = 1_024;

/// The largest length of a segment, in bytes: the limit of most file systems.
const MAX_SEGMENT: usize = 255;

/// The largest number of segments of a new path: each segment but the last is a folder of the file store, which takes space
/// that no quota counts.
const MAX_NEW_SEGMENTS: usize = 32;

/// The largest length of a bucket's name.
const MAX_BUCKET: usize = 63;

/// The bucket of the spaces' files: public, written by the owner of the space that the path names.
pub(crate) const SPACES: &str = "spaces";

/// The bucket of private files. The path begins with a user's id or linked key; only this user reads and writes the file.
pub(crate) const PRIVATE: &str = "private";

/// The bucket of shared assets: public. The service writes the folders of SPEC 2.8, any user elsewhere.
pub(crate) const ASSETS: &str = "assets";

/// The buckets that exist without being declared.
pub(crate) const BUILT_IN_BUCKETS: [&str; 3] = [SPACES, PRIVATE, ASSETS];

/// Returns true if `name` may be the name of a declared bucket: 1 to 63 of `a-z`, `0-9`, `_` and `-`, and not built-in.
pub(crate) fn is_bucket_name(name: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    (1..=MAX_BUCKET).contains(&name.len()) && name.bytes().all(is_allowed) && !BUILT_IN_BUCKETS.contains(&name)
}

/// The path of a file inside its bucket.
///
/// A path is Unicode text in the normal form NFC, of segments joined by `/`. It has at most 1,024 bytes, a segment at most
/// 255. No segment is empty, `.` or `..`, and there is no control character and no backslash. Case matters. Percent signs
/// have no meaning: HTTP targets are decoded before they become paths.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FilePath(String);

impl FilePath {
    /// Checks a path.
    ///
    /// # Errors
    /// `InvalidInput` with status 400 if the path breaks the rule. The message names the segment.
    pub(crate) fn parse(path: &str) -> Result<FilePath> {
        match path_fault(path) {
            Some(fault) => Err(Error::file(400, fault)),
            None => Ok(FilePath(path.to_owned())),
        }
    }

    /// Checks that a new file may have the path. Controls of the direction of text are refused, because they make a name look
    /// like another one; so are more than 32 segments. (A stored file with such a path can be read, moved and deleted.)
    ///
    /// # Errors
    /// `InvalidInput` with status 400; the message names the character, or the number of segments.
    pub(crate) fn check_new(&self) -> Result<()> {
        new_fault(&self.0).map_or(Ok(()), |fault| Err(Error::file(400, fault)))
    }

    /// Checks the prefix of a list: the beginning of a path, which may end inside a segment. The empty prefix is valid. `..`
    /// at the end is refused although a name may start with it, because a caller means the folder above.
    ///
    /// # Errors
    /// `InvalidInput` with status 400 if no path can start with `prefix`. The message names the segment.
    pub(crate) fn check_prefix(prefix: &str) -> Result<()> {
        let last = prefix.matches('/').count();
        let may_begin_a_name = |index, segment| index == last && matches!(segment, "" | ".");
        let segment_fault = || {
            let segments = prefix.split('/').enumerate();
            segments.filter(|&(index, segment)| !may_begin_a_name(index, segment)).find_map(segment_fault)
        };
        let fault = text_fault(prefix).or_else(segment_fault);
        fault.map_or(Ok(()), |fault| Err(Error::file(400, fault)))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The first segment, which policies compare with the caller.
    pub(crate) fn first_segment(&self) -> &str {
        first_segment(&self.0)
    }

    /// The last segment.
    pub(crate) fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The folders that contain the file, outermost first: `a` and `a/b` for `a/b/c`. No file may have the path of a folder.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &str> {
        folders(&self.0)
    }
}

/// The first segment of a checked path. See [`FilePath::first_segment`].
pub(crate) fn first_segment(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// The folders that contain the file with a checked path. See [`FilePath::folders`].
pub(crate) fn folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The rule that `path` breaks, as a sentence that names the segment by its number, from 1.
fn path_fault(path: &str) -> Option<String> {
    text_fault(path).or_else(|| path.split('/').enumerate().find_map(segment_fault))
}

/// The rule that a segment breaks. Segments count from 0 here, and from 1 in the text.
fn segment_fault((index, segment): (usize, &str)) -> Option<String> {
    let fault = match segment {
        "" => "is empty".to_owned(),
        "." | ".." => format!("is `{segment}`"),
        _ if segment.len() > MAX_SEGMENT => format!("has {} bytes; the limit is {MAX_SEGMENT}", segment.len()),
        _ => return None,
    };
    Some(format!("segment {} of the path {fault}", index + 1))
}

/// The rule about length and characters that a path, or a part of a path, breaks.
fn text_fault(text: &str) -> Option<String> {
    if text.len() > MAX_PATH {
        return Some(format!("the path has {} bytes; the limit is {MAX_PATH}", text.len()));
    }
    match text.chars().find(|&character| character.is_control() || character == '\\') {
        Some('\\') => Some("the path contains a backslash".to_owned()),
        Some(control) => Some(format!("the path contains the control character U+{:04X}", u32::from(control))),
        None if !is_nfc(text) => Some("the path is not in Unicode's normal form C (NFC)".to_owned()),
        None => None,
    }
}

/// The rule for new files that this path breaks.
fn new_fault(path: &str) -> Option<String> {
    depth_fault(path).or_else(|| direction_fault(path))
}

/// The number of segments of a path, as a sentence, if there are too many.
fn depth_fault(path: &str) -> Option<String> {
    let segments = path.split('/').count();
    (segments > MAX_NEW_SEGMENTS)
        .then(|| format!("the path has {segments} segments; the limit of a new file is {MAX_NEW_SEGMENTS}"))
}

/// Whether a character is a control of the direction of text (UAX #9, 2): it changes the order in which the text around it is shown.
pub(crate) fn is_direction_control(character: char) -> bool {
    matches!(character, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// The control of the direction of text that a path contains, as a sentence.
fn direction_fault(path: &str) -> Option<String> {
    let found = path.chars().find(|character| is_direction_control(*character))?;
    Some(format!("the path contains the bidirectional control U+{:04X}", u32::from(found)))
}

/// The bucket and path of a file of a space, of a private file or of a shared asset. [`SpacePath`], [`PrivatePath`]
/// and [`AssetPath`] make it.
///
/// ```
/// use townsquare::{Uuid, storage::SpacePath};
///
/// let home = SpacePath::tab(Uuid::nil(), "Home")?;
/// assert_eq!((home.bucket(), home.path()), ("spaces", "00000000-0000-0000-0000-000000000000/tabs/Home"));
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StoragePath {
    bucket: &'static str,
    path: String,
}

impl StoragePath {
    /// Checks a path that a helper has made.
    fn checked(bucket: &'static str, path: String) -> Result<StoragePath> {
        match path_fault(&path).or_else(|| new_fault(&path)) {
            Some(fault) => Err(Error::invalid_input(format!("{path:?} is no valid path: {fault}"))),
            None => Ok(StoragePath { bucket, path }),
        }
    }

    /// The name of the bucket: `spaces`, `private` or `assets`.
    pub fn bucket(&self) -> &'static str {
        self.bucket
    }

    /// The path inside the bucket.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// Writes `BUCKET/PATH`, for example `assets/images/logo.png`.
impl fmt::Display for StoragePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.bucket, self.path)
    }
}

/// The paths of a space's files. Everyone may read them; the owner of the space may write them.
///
/// ```
/// use townsquare::{Uuid, storage::SpacePath};
///
/// let id = Uuid::nil();
/// assert_eq!(SpacePath::tab_order(id).path(), format!("{id}/tabOrder"));
/// assert_eq!(SpacePath::tab(id, "Café 2")?.path(), format!("{id}/tabs/Café 2"));
/// assert_eq!(SpacePath::asset(id, "logo.png")?.path(), format!("{id}/assets/logo.png"));
/// assert!(SpacePath::tab(id, "a/b").is_err());
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Debug)]
pub enum SpacePath {}

impl SpacePath {
    /// The file with the order of the tabs: `<space_id>/tabOrder`.
    pub fn tab_order(space_id: Uuid) -> StoragePath {
        StoragePath { bucket: SPACES, path: format!("{space_id}/tabOrder") }
    }

    /// The configuration of one tab: `<space_id>/tabs/<name>`.
    ///
    /// A tab's name consists of letters and digits of any script, hyphens, underscores and spaces. It neither starts nor ends
    /// with a space. The path contains the name in the normal form NFC, so that a name has one path on
    /// every system.
    ///
    /// # Errors
    /// `InvalidInput` if the name contains another character, is empty, or has more than 255 bytes.
    pub fn tab(space_id: Uuid, name: &str) -> Result<StoragePath> {
        StoragePath::checked(SPACES, format!("{space_id}/tabs/{}", tab_name(name)?))
    }

    /// An asset of the space: `<space_id>/assets/<name>`. The name may contain folders: `icons/sun.png`.
    ///
    /// # Errors
    /// `InvalidInput` if the name breaks the rule of paths.
    pub fn asset(space_id: Uuid, name: &str) -> Result<StoragePath> {
        StoragePath::checked(SPACES, format!("{space_id}/assets/{name}"))
    }
}

/// The paths of private files. The owner is a user's id, or an identity key that the user has linked.
///
/// ```
/// use townsquare::storage::PrivatePath;
///
/// let key = "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664";
/// assert_eq!(PrivatePath::homebase(key)?.path(), format!("{key}/homebase"));
/// assert_eq!(PrivatePath::tab(key, "Notes")?.path(), format!("{key}/tabs/Notes"));
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Debug)]
pub enum PrivatePath {}

impl PrivatePath {
    /// The private space file: `<owner>/homebase`.
    ///
    /// # Errors
    /// `InvalidInput` if `owner` is neither an identity key (64 lower-case hex digits) nor a user's id.
    pub fn homebase(owner: &str) -> Result<StoragePath> {
        StoragePath::checked(PRIVATE, format!("{}/homebase", private_owner(owner)?))
    }

    /// The configuration of one private tab: `<owner>/tabs/<name>`.
    ///
    /// # Errors
    /// `InvalidInput` for an owner as in [`homebase`](Self::homebase), and for a name as in [`SpacePath::tab`].
    pub fn tab(owner: &str, name: &str) -> Result<StoragePath> {
        StoragePath::checked(PRIVATE, format!("{}/tabs/{}", private_owner(owner)?, tab_name(name)?))
    }
}

/// The paths of shared assets. Everyone may read them; only the service may write them. (Users add their files
/// elsewhere in the bucket `assets`.)
///
/// ```
/// use townsquare::storage::AssetPath;
///
/// assert_eq!(AssetPath::image("logo.png")?.to_string(), "assets/images/logo.png");
/// assert_eq!(AssetPath::video("intro.mp4")?.to_string(), "assets/videos/intro.mp4");
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Debug)]
pub enum AssetPath {}

impl AssetPath {
    /// An image: `images/<name>`. The name may contain folders.
    ///
    /// # Errors
    /// `InvalidInput` if the name breaks the rule of paths.
    pub fn image(name: &str) -> Result<StoragePath> {
        StoragePath::checked(ASSETS, format!("images/{name}"))
    }

    /// A video: `videos/<name>`. The name may contain folders.
    ///
    /// # Errors
    /// `InvalidInput` if the name breaks the rule of paths.
    pub fn video(name: &str) -> Result<StoragePath> {
        StoragePath::checked(ASSETS, format!("videos/{name}"))
    }
}

/// Checks a tab's name and returns it in NFC.
fn tab_name(name: &str) -> Result<String> {
    // Scripts such as Devanagari write words with combining marks.
    let is_letter = |character: char| character.is_alphanumeric() || is_combining_mark(character);
    let is_allowed = |character| is_letter(character) || matches!(character, '-' | '_' | ' ');
    // NFC makes a name at most three times as short. It takes long for a large one.
    if name.len() > 4 * MAX_SEGMENT {
        return Err(Error::invalid_input(format!("A tab name has at most {MAX_SEGMENT} bytes")));
    }
    if !name.chars().all(is_allowed) {
        return Err(Error::invalid_input(format!(
            "{name:?} is no tab name: a tab name consists of letters, digits, hyphens, underscores and spaces"
        )));
    }
    if name.is_empty() || name.starts_with([' ']) || name.ends_with(' ') || name.starts_with(is_combining_mark) {
        return Err(Error::invalid_input(format!(
            "{name:?} is no tab name: a tab name is not empty, and starts and ends with a letter, a digit, - or _"
        )));
    }
    Ok(name.nfc().collect())
}

/// Checks the first segment of a private path.
fn private_owner(owner: &str) -> Result<&str> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_key = owner.len() == 64 && owner.bytes().all(is_hex);
    let is_user = Uuid::try_parse(owner).is_ok_and(|id| id.hyphenated().to_string() == owner);
    if is_key || is_user {
        return Ok(owner);
    }
    Err(Error::invalid_input(format!(
        "{owner:?} owns no private files: an owner is an identity key of 64 lower-case hex digits, or a user's id"
    )))
}

#[cfg(test)]
mod tests;
