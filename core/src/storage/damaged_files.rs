//! The files whose bytes a backup or an export cannot have, for its error.

use crate::error::{Error, Result};

/// The damaged files that a message names.
const NAMED: usize = 10;

/// The files whose bytes are gone or of another size, with the reasons.
#[derive(Default)]
pub(super) struct DamagedFiles(Vec<String>);

impl DamagedFiles {
    pub(super) fn add(&mut self, bucket: &str, path: &str, reason: &str) {
        self.0.push(format!("{bucket}/{path} ({reason})"));
    }

    /// Succeeds if there are no damaged files. `what_lacks_them` begins the message.
    ///
    /// # Errors
    /// `Internal` (500), naming the files, if there are any.
    pub(super) fn into_result(self, what_lacks_them: &str) -> Result<()> {
        let DamagedFiles(mut files) = self;
        let count = files.len();
        if count == 0 {
            return Ok(());
        }
        files.truncate(NAMED);
        let more = if count > NAMED { format!(", and {} more", count - NAMED) } else { String::new() };
        let files = files.join(", ");
        Err(Error::file(500, format!("{what_lacks_them} {count} damaged files: {files}{more}")))
    }
}
