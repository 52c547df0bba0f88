//! The sessions of any user, for the service: listing and ending them.
//!
//! Invariant: [`SessionInfo`] has no token and no hash.

use jiff::Timestamp;
use uuid::Uuid;

use super::{Auth, SessionInfo, accounts::Accounts, session_store::ACCESS, statements as sql};
use crate::{
    clock::earlier,
    database::Row,
    error::{Error, Operation, Result},
};

impl Auth {
    /// Returns the sessions of a user that have not ended, the latest first; none for a user that does not exist. Only the service may
    /// do this.
    ///
    /// # Errors
    /// `Unauthorized` for an anonymous caller, `Forbidden` for a user.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// let service = client.as_service();
    /// let ann = service.auth().sign_up("ann@town.example", "correct horse")?;
    /// service.auth().create_session("ann@town.example", "correct horse")?;
    /// for session in service.auth().sessions_of(ann.id)? {
    ///     println!("{} since {}, until {}", session.id, session.created_at, session.expires_at);
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn sessions_of(&self, user_id: Uuid) -> Result<Vec<SessionInfo>> {
        self.run_as_service(Operation::SessionsOf, self.accounts.sessions_of(user_id)).await
    }

    /// Ends a session of a user. Its tokens are refused from then on, and its streams end. An upload of a large
    /// file completes once its bytes are staged; others store nothing. Only the service may do this.
    ///
    /// # Errors
    /// `NotFound` if the user has no such session, or it has expired; `Unauthorized` for an anonymous caller, `Forbidden` for a user.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # let ann = client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().create_session("ann@town.example", "correct horse")?;
    /// let service = client.as_service();
    /// if let Some(latest) = service.auth().sessions_of(ann.id)?.first() {
    ///     service.auth().end_session(ann.id, latest.id)?;
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn end_session(&self, user_id: Uuid, session_id: Uuid) -> Result<()> {
        self.run_as_service(Operation::EndSession, self.accounts.end_session(user_id, session_id)).await
    }

    /// Ends every session of a user, and the user's signed URLs, as [`SignOutScope::Global`](crate::auth::SignOutScope::Global) does.
    /// Returns the number of sessions that had not ended before. If the answer of a first try is lost, the retry does not count the
    /// sessions which that try ended.
    /// Only the service may do this.
    ///
    /// # Errors
    /// `Unauthorized` for an anonymous caller, `Forbidden` for a user.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # let ann = client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().create_session("ann@town.example", "correct horse")?;
    /// assert_eq!(client.as_service().auth().end_sessions(ann.id)?, 1);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn end_sessions(&self, user_id: Uuid) -> Result<u64> {
        self.run_as_service(Operation::EndSessions, self.accounts.end_sessions(user_id)).await
    }
}

impl Accounts {
    async fn sessions_of(&self, user_id: Uuid) -> Result<Vec<SessionInfo>> {
        let values = vec![user_id.into(), self.clock.now().into()];
        self.scope.scan(&sql::LIST_SESSIONS, values, session_info).await
    }

    async fn end_session(&self, user_id: Uuid, session_id: Uuid) -> Result<()> {
        let values = vec![user_id.into(), session_id.into(), self.clock.now().into()];
        let ended = self.scope.execute_idempotent(&sql::END_SESSION, values, sql::id).await?;
        ended.map(drop).ok_or_else(Error::not_found)
    }

    async fn end_sessions(&self, user_id: Uuid) -> Result<u64> {
        let now = self.clock.now();
        let delete = self.scope.write_idempotent(move |transaction| {
            Box::pin(async move {
                // First, so that a concurrent sign-in creates its session either before this deletion or after it.
                transaction.execute(&sql::RAISE_URL_GENERATION, &[user_id.into()]).await?;
                // An expired session has ended already, and does not count.
                transaction.execute(&sql::DELETE_EXPIRED_SESSIONS_OF, &[user_id.into(), now.into()]).await?;
                transaction.execute(&sql::DELETE_ALL_SESSIONS, &[user_id.into()]).await
            })
        });
        delete.await
    }
}

fn session_info(row: &Row<'_>) -> Result<SessionInfo> {
    let access_expires_at: Timestamp = row.get(2)?;
    Ok(SessionInfo {
        id: row.get(0)?,
        created_at: row.get(1)?,
        // A refresh gives tokens that are valid for `ACCESS`.
        refreshed_at: earlier(access_expires_at, ACCESS),
        expires_at: row.get(3)?,
    })
}
