//! Lists of files, in the order of their paths.
//!
//! Invariant: a list costs what its rows cost, however many files of other users the bucket has. In a private bucket a user
//! sees the files below few first segments, and in `spaces` the files of visible spaces, so the list reads each of them as a range
//! of paths. (A list of all spaces also looks at each hidden space with files in between.)

use super::{
    Storage,
    buckets::{BucketAccess, space_id_of},
    statements as sql,
};
use crate::{
    database::{ReadablePage, Row, readable_record},
    error::{Error, Result},
    model::{FileInfo, ListFiles},
    policy::Caller,
    storage_path::{FilePath, first_segment},
};

/// The most files of a page.
pub(super) const PAGE: u32 = 1_000;

/// How many spaces with files a list of `spaces` looks at in its first step. Each further step looks at twice as many, up to
/// [`MOST_AT_ONCE`].
const FIRST_AT_ONCE: i64 = 100;

const MOST_AT_ONCE: i64 = 6_400;

/// The paths from the first text to before the second.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PathRange(String, String);

impl Storage {
    pub(super) async fn list_files(&self, bucket: &str, files: &ListFiles) -> Result<Vec<FileInfo>> {
        let access = self.core.buckets.access(bucket)?;
        if !(1..=PAGE).contains(&files.limit) {
            return Err(Error::file(400, format!("limit is 1 to {PAGE}")));
        }
        FilePath::check_prefix(&files.prefix)?;
        // Any other text is a place in the order. PostgreSQL has no text with this character.
        if files.after.as_deref().is_some_and(|after| after.contains('\0')) {
            return Err(Error::file(400, "after contains the character U+0000"));
        }
        self.wait_for_changes(|key| key.bucket == bucket && key.path.starts_with(&files.prefix)).await;
        let all = PathRange(files.prefix.clone(), end_of_prefix(&files.prefix));
        let mut found = Vec::new();
        match (access, self.scope.caller()) {
            (BucketAccess::Private, Caller::User(_) | Caller::Anonymous) => {
                self.list_ranges(bucket, files, all.inside(&self.own_segments().await?), &mut found).await?;
            }
            (BucketAccess::Spaces, Caller::User(_) | Caller::Anonymous) => {
                self.list_spaces(bucket, files, &all, &mut found).await?;
            }
            _ => self.list_ranges(bucket, files, vec![all], &mut found).await?,
        }
        Ok(found)
    }

    /// Adds the files of `ranges` until the page is full.
    async fn list_ranges(
        &self,
        bucket: &str,
        files: &ListFiles,
        ranges: Vec<PathRange>,
        found: &mut Vec<FileInfo>,
    ) -> Result<()> {
        for range in ranges {
            let rest = files.limit.saturating_sub(found.len() as u32);
            if rest == 0 {
                break;
            }
            found.extend(self.list_range(bucket, range, files.after.as_deref(), rest).await?);
        }
        Ok(())
    }

    /// Adds the files of visible spaces.
    async fn list_spaces(
        &self,
        bucket: &str,
        files: &ListFiles,
        all: &PathRange,
        found: &mut Vec<FileInfo>,
    ) -> Result<()> {
        let is_of_no_space = files.prefix.contains('/') && space_id_of(bucket, &files.prefix).is_none();
        // No space has files there.
        let end = if is_of_no_space { String::new() } else { all.1.clone() };
        let start = files.after.as_deref().map_or(all.0.as_str(), |after| after.max(&all.0));
        let (mut start, mut most) = (first_segment(start).to_owned(), FIRST_AT_ONCE);
        loop {
            let values = vec![start.into(), end.clone().into(), most.into()];
            let read = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get::<bool>(1)?));
            let folders = self.scope.scan(&sql::FOLDERS_OF_SPACES, values, read).await?;
            let (visible, last): (Vec<_>, Vec<_>) = folders.into_iter().partition(|(_, is_folder)| *is_folder);
            let mut segments: Vec<String> = visible.into_iter().map(|(segment, _)| segment).collect();
            segments.sort_unstable();
            // Without a folder, the list of an empty range checks the session.
            if !segments.is_empty() || most == FIRST_AT_ONCE {
                self.list_ranges(bucket, files, all.inside(&segments), found).await?;
            }
            match last.into_iter().next() {
                // No path is between the two texts.
                Some((last, _)) if found.len() < files.limit as usize => start = format!("{last}\u{1}"),
                _ => return Ok(()),
            }
            most = MOST_AT_ONCE.min(most * 2);
        }
    }

    /// The first segments of the caller's private files, in order: the user's id and the linked keys.
    async fn own_segments(&self) -> Result<Vec<String>> {
        let Some(id) = self.scope.caller().id() else { return Ok(Vec::new()) };
        let read = |row: &Row<'_>| row.get::<String>(0);
        // The policy decides which rows the caller sees. The segments are only where to look for them.
        let mut segments = self.core.service.fetch(&sql::LINKED_KEYS, &[id.into()], read).await?;
        segments.push(id.to_string());
        segments.sort_unstable();
        Ok(segments)
    }

    async fn list_range(
        &self,
        bucket: &str,
        PathRange(start, end): PathRange,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<FileInfo>> {
        let after = after.filter(|after| *after >= start.as_str());
        let statement = if after.is_some() { &sql::LIST_AFTER } else { &sql::LIST_FROM };
        let mut page = ReadablePage::new(limit);
        loop {
            let wanted = page.wanted.into();
            let values = [bucket.into(), after.unwrap_or(&start).into(), end.as_str().into(), wanted];
            if let Some(files) = page.of(self.scope.fetch(statement, &values, readable_record).await?) {
                return Ok(files);
            }
        }
    }
}

impl PathRange {
    /// The parts of the range below these first segments, which are in order. If there are none, one empty range: the
    /// statement with it still checks the session.
    fn inside(&self, segments: &[String]) -> Vec<PathRange> {
        let part = |segment: &String| {
            // `0` follows `/`.
            let (start, end) = (std::cmp::max(&self.0, segment).clone(), self.1.clone().min(format!("{segment}0")));
            (start < end).then_some(PathRange(start, end))
        };
        let parts: Vec<PathRange> = segments.iter().filter_map(part).collect();
        if parts.is_empty() { vec![PathRange(self.0.clone(), self.0.clone())] } else { parts }
    }
}

/// A text that is greater than every path with the prefix, and not greater than any path after them.
pub(super) fn end_of_prefix(prefix: &str) -> String {
    let mut start: Vec<char> = prefix.chars().collect();
    while let Some(last) = start.pop() {
        // Code points have the order of their bytes in UTF-8.
        let next = if last == '\u{D7FF}' { Some('\u{E000}') } else { char::from_u32(u32::from(last) + 1) };
        if let Some(next) = next {
            start.push(next);
            return start.into_iter().collect();
        }
    }
    // Longer than any path.
    "\u{10FFFF}".repeat(300)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_follows_every_path_with_it() {
        assert_eq!(end_of_prefix("a/"), "a0");
        assert_eq!(end_of_prefix("a\u{10FFFF}"), "b");
        assert_eq!(end_of_prefix("\u{D7FF}"), "\u{E000}");
        assert!(end_of_prefix("") > "\u{10FFFF}".repeat(256));
    }

    #[test]
    fn a_user_looks_below_the_own_segments_only() {
        let range = |start: &str, end: &str| PathRange(start.to_owned(), end.to_owned());
        let own = ["b".to_owned(), "d".to_owned()];
        let all = range("", &end_of_prefix(""));
        assert_eq!(all.inside(&own), [range("b", "b0"), range("d", "d0")]);
        assert_eq!(range("b/x", "b/y").inside(&own), [range("b/x", "b/y")]);
        assert_eq!(range("c", "e").inside(&own), [range("d", "d0")]);
        assert_eq!(range("c", "d").inside(&own), [range("c", "c")]);
        assert_eq!(all.inside(&[]), [range("", "")]);
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn a_list_seeks_to_its_range() {
        for statement in [&sql::LIST_FROM, &sql::LIST_AFTER] {
            let plan = crate::database::query_plan(statement).join("\n");
            assert!(plan.contains("bucket=? AND path>? AND path<?"), "{plan}");
            assert!(!plan.contains("SCAN files") && !plan.contains("TEMP B-TREE"), "{plan}");
        }
        let plan = crate::database::query_plan(&sql::LINKED_KEYS).join("\n");
        assert!(!plan.contains("SCAN"), "{plan}");
        let plan = crate::database::query_plan(&sql::FIRST_OBJECTS).join("\n");
        assert!(plan.contains("townsquare_files_objects"), "{plan}");
    }
}
