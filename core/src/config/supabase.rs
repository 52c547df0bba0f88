//! Where a Supabase project has its rows and its files.

use super::{Secret, resolved::project_files};
use crate::{config::FilesLocation, error::Result};

/// A Supabase project, which [`Client::move_from_supabase`](crate::Client::move_from_supabase) copies. `Debug` prints no URL.
///
/// ```
/// use townsquare::SupabaseProject;
///
/// let project = SupabaseProject::new("postgres://postgres:secret@db.abc.supabase.co/postgres")
///     .files("s3://?endpoint=https://abc.storage.supabase.co/storage/v1/s3&region=eu-central-1");
/// assert!(!format!("{project:?}").contains("secret"));
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct SupabaseProject {
    database_url: Secret,
    files: Option<Secret>,
}

impl SupabaseProject {
    /// Names the database of the project: a URL of PostgreSQL, as the option
    /// [`database_url`](crate::Config::database_url) takes it. The role must read every row, as `postgres` does.
    pub fn new(database_url: impl Into<String>) -> SupabaseProject {
        SupabaseProject { database_url: Secret::new(database_url), files: None }
    }

    /// Names the place of the bytes of `storage.objects`. A project without objects needs none.
    ///
    /// - `s3://?endpoint=URL&region=REGION`, without a bucket: each bucket of the project is a bucket of that name, as the S3
    ///   protocol of Supabase Storage serves them. The keys are in the variables `AWS_ACCESS_KEY_ID` and
    ///   `AWS_SECRET_ACCESS_KEY`, or in the query as for [`storage_url`](crate::Config::storage_url).
    /// - `s3://BUCKET/PREFIX`, or a URL of another store: its keys are `BUCKET/NAME` with the bucket of the project.
    /// - A folder, or `file:FOLDER`, with the files `BUCKET/NAME`. Symbolic links are not followed.
    pub fn files(mut self, place: impl Into<String>) -> SupabaseProject {
        self.files = Some(Secret::new(place));
        self
    }

    pub(crate) fn database_url(&self) -> &Secret {
        &self.database_url
    }

    /// The place of the files, and whether each bucket of the project is a bucket of the store. `None` if no place is named.
    ///
    /// # Errors
    /// `Config`.
    pub(crate) fn files_location(&self) -> Result<Option<(FilesLocation, bool)>> {
        self.files.as_ref().map(|place| project_files(place.reveal())).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(place: &str) -> Result<Option<(FilesLocation, bool)>> {
        SupabaseProject::new("").files(place).files_location()
    }

    #[test]
    fn a_place_is_a_folder_or_a_store() {
        for folder in ["files", "./a:b", "file:files", "/srv/files"] {
            assert!(matches!(location(folder), Ok(Some((FilesLocation::Folder(_), false)))), "{folder}");
        }
        assert!(matches!(location("s3://?endpoint=http://h"), Ok(Some((FilesLocation::Remote { .. }, true)))));
        assert!(matches!(location("s3:?endpoint=http://h"), Ok(Some((FilesLocation::Remote { .. }, true)))));
        assert!(matches!(location("s3://copy/of"), Ok(Some((FilesLocation::Remote { .. }, false)))));
        for bad in ["", "ftp://planted@h/x", "file:", "memory:", "gs://", "s3://planted planted"] {
            let error = location(bad).err().expect(bad);
            assert!(error.message().contains("files") && !error.message().contains("planted"), "{bad}: {error}");
        }
        assert!(SupabaseProject::new("").files_location().expect("no place").is_none());
    }
}
