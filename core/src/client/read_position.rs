//! Positions: how a reader sees what another process has written, although replicas answer reads.

use super::Client;
use crate::{
    database::{LogPlace, call},
    error::{Operation, Result},
};

impl Client {
    /// Returns the position of everything that this client has written, and of what this handle was told by
    /// [`read_after`](Client::read_after). A client of another process that is told this position reads all of it, also where a replica
    /// answers (option `database_replica_url`).
    ///
    /// Within one client nobody needs it: all its handles read what any of them has written. With several processes, a web server
    /// returns it with the response to a write, and the browser sends it with the next request.
    ///
    /// It is a short text without secrets. It is empty if nothing was written, and on SQLite, which has no replicas.
    ///
    /// # Errors
    /// `Unavailable` if the PostgreSQL server does not answer: it names the position after a write. The write is committed all the
    /// same.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// use townsquare::spaces::NewSpace;
    ///
    /// let writer = client.as_service();
    /// let space = writer.spaces().create_space(NewSpace::named("Harbor").public())?;
    /// let position = writer.read_position()?;
    ///
    /// // Elsewhere, with another client of the same database.
    /// let reader = client.as_anonymous();
    /// reader.read_after(&position)?;
    /// assert_eq!(reader.spaces().get_space(space.id)?.name, "Harbor");
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn read_position(&self) -> Result<String> {
        let principal = self.0.auth.principal();
        let scope = self.0.core.database.scope(principal.clone());
        call(principal, Operation::ReadPosition, scope.read_position()).await
    }

    /// Has later reads of this handle see what was written before `position`, which [`read_position`](Client::read_position)
    /// returned. A read waits up to the option `database_replica_wait` until the replica has it, and is then answered by the server
    /// of `database_url`. Without replicas, and with an empty position, nothing changes. While the primary is lost, a standby that
    /// `database_url` names may answer without it.
    ///
    /// The position of another database is not an error: the server of `database_url` then answers the reads of this handle. So a
    /// position may come from outside, as in the header of a request.
    ///
    /// # Errors
    /// `InvalidInput` for a text that is no position.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// use townsquare::ErrorKind;
    ///
    /// let request = client.as_anonymous();
    /// request.read_after("")?;
    /// assert_eq!(request.read_after("yesterday").unwrap_err().kind(), ErrorKind::InvalidInput);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn read_after(&self, position: &str) -> Result<()> {
        let principal = self.0.auth.principal();
        call(principal, Operation::ReadAfter, async {
            if !position.is_empty() {
                principal.seen().read_after(position.parse::<LogPlace>()?);
            }
            Ok(())
        })
        .await
    }
}
