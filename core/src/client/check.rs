//! The check of a client: its parts go to `check`.

use super::Client;
use crate::{
    check::{self, CheckDepth, CheckedParts, Finding},
    database::call,
    error::{Operation, Result},
};

impl Client {
    /// Returns what is wrong, or will be, the worst first; nothing if all is well. Checks the integrity of the database, migrations,
    /// policies, files against their rows, the object store, the change feed, room on the disks, the clock and the modes of
    /// files. Changes nothing: no row, no file, no object. The page [`check_guide`](crate::check_guide) lists the codes of the
    /// findings. At most 100 findings of a code are listed.
    ///
    /// Writers go on meanwhile; a file that they write or delete is no finding. A quick check reads the rows of files and the names
    /// and sizes of their objects, and has SQLite look at its pages. A full check reads every byte of the database and of the
    /// files, which takes as long as that takes. On SQLite it holds one moment of the database, so the write-ahead log grows by
    /// what is written meanwhile. A check whose future is dropped ends with the part that runs.
    ///
    /// A check is an operation of the host, not of a caller: every handle may call it, and findings name files and tables, also
    /// those that policies hide from the handle's caller. They contain no address, token or secret.
    ///
    /// # Errors
    /// `Closed`. Every other failure is a finding, such as `database_unreachable`.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path().join("town")))?;
    /// use townsquare::check::{CheckDepth, Severity};
    ///
    /// let findings = client.check(CheckDepth::Quick)?;
    /// let is_broken = findings.iter().any(|finding| finding.severity() == Severity::Error);
    /// assert!(!is_broken, "{findings:?}");
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn check(&self, depth: CheckDepth) -> Result<Vec<Finding>> {
        call(self.0.auth.principal(), Operation::Check, async {
            let core = &*self.0.core;
            core.process.get()?;
            let parts = CheckedParts {
                database: &core.database,
                storage: &core.storage,
                realtime: &core.realtime,
                places: &core.places,
                runtime: core.runtime.handle(),
            };
            check::run(parts, depth).await
        })
        .await
    }
}
