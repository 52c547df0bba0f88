//! What to do about an error.
//!
//! Invariant: a missing row and a hidden row have the same explanation, and an explanation has no values in it, so a stranger
//! may read it.

use super::{
    Error, ErrorKind, OUTCOME_UNKNOWN, Operation,
    create::{DATA_CORRUPTED, NO_DATABASE, NOT_MIGRATED, PERMISSION_DENIED},
};

/// SQLSTATE `read_only_sql_transaction`.
const READ_ONLY: &str = "25006";

/// SQLSTATE `too_many_connections`.
const TOO_MANY_CONNECTIONS: &str = "53300";

/// SQLSTATE `io_error`.
const IO_ERROR: &str = "58030";

impl Error {
    /// What to do about the error, in one sentence.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// let space = client.as_service().spaces().create_space(townsquare::spaces::NewSpace::named("Chess"))?;
    /// let error = client.as_service().spaces().get_space_with_fidgets(space.id).unwrap_err();
    /// assert!(error.explanation().contains("allow_empty"));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn explanation(&self) -> &'static str {
        use ErrorKind as Kind;
        use Operation as Of;
        let operation = self.operation();
        let is_of_files = operation.is_some_and(Operation::is_of_files);
        match (self.kind(), operation, self.code()) {
            (..) if self.is_out_of_descriptors() => {
                "Close clients that are no longer needed, or raise the limit of open files (`ulimit -n`), then try again."
            }
            (_, Some(Of::Restore), Some(DATA_CORRUPTED)) => {
                "The backup is damaged or not complete: restore another one."
            }
            (_, _, Some(DATA_CORRUPTED)) => "The database is damaged: restore it from a backup.",
            (Kind::AlreadyExists, Some(Of::SignUp | Of::UpdateUser), _) => {
                "Sign in to the account with this address, or use another address."
            }
            (Kind::AlreadyExists, Some(Of::LinkIdentity), _) => {
                "Unlink the key from the other user first, or link another key."
            }
            (Kind::AlreadyExists, Some(Of::RegisterSpace), _) => {
                "Read the existing registration with get_space_registration."
            }
            (Kind::AlreadyExists, Some(Of::SaveCommunityDomain), _) => {
                "Delete the domain with delete_community_domain first, or use another domain or another type."
            }
            (Kind::AlreadyExists, Some(Of::ImportRows), _) => {
                "Leave the row out, or delete the row that is there: an import changes none."
            }
            (Kind::AlreadyExists, _, None) if self.is_folder_in_the_way() => {
                "Use another path, or delete or move what has the name: a file, or the files of a folder."
            }
            (Kind::AlreadyExists, _, None) => {
                "Use another path, or let the call replace the file: an upload, a copy and a move have an argument for that."
            }
            (Kind::AlreadyExists, ..) => {
                "Use another value for the column that the message names; without an id, the database chooses one."
            }
            (Kind::ReferenceMissing, ..) => {
                "Create the row that is referred to first: the owner of a space, the space of a fidget, the community of a domain."
            }
            (Kind::FieldMissing, ..) => "Give a value for the field that the message names.",
            (Kind::TableMissing, ..) => {
                "Check that database_url names the right database; restore a table that was dropped from a backup."
            }
            (Kind::NotFound, Some(Of::GetSpaceWithFidgets), _) => {
                "A space without fidgets is only found with allow_empty (get_space_with_any_fidgets in Rust, C and C++); else \
                 check the id, and use the owner's handle or as_service() for a private space."
            }
            (Kind::NotFound, Some(Of::GetSimilarMiniApps), _) => "Check the id: the directory has no app with it.",
            (Kind::NotFound, ..) if self.is_loss_of_bytes() => {
                "The file has a row, and its bytes are gone: put them back from a backup, upload the file again, or delete it. check() names all such files."
            }
            (Kind::NotFound, ..) if is_of_files => {
                "Check the bucket and the path; a file that the caller may not see is not found either, so sign in as its owner \
                 or use as_service()."
            }
            (Kind::NotFound, ..) => {
                "Check the id; a row that the caller may not see is not found either, so sign in as its owner or use as_service()."
            }
            (Kind::InvalidInput, ..) => "Correct the argument as the message says.",
            (Kind::Unauthorized, Some(Of::SignIn), _) => "Check the address and the password.",
            (Kind::Unauthorized, Some(Of::UpdateUser | Of::DeleteUser), None) => {
                "Check the current password, and sign in again if the session has ended."
            }
            (Kind::Unauthorized, Some(Of::Recover | Of::VerifyEmail), _) => {
                "Create a new token: this one was used, has expired or is of another account."
            }
            (Kind::Unauthorized, Some(Of::LinkIdentity), None) => {
                "Sign in, and make a new claim with identity_claim() for this user and identity_audience()."
            }
            (Kind::Unauthorized, Some(Of::Identities), None) => "Sign in, and sign in again if the session has ended.",
            (Kind::Unauthorized | Kind::Forbidden, Some(Of::DeleteUser), Some(PERMISSION_DENIED)) => {
                "Use as_service(): only the service deletes a user by id. Delete your own account with your current password."
            }
            (Kind::Unauthorized | Kind::Forbidden, Some(operation), _) if operation.is_for_service() => {
                "Use as_service(): this is work of the program itself, which no user may do."
            }
            (Kind::Unauthorized | Kind::Forbidden, _, Some(PERMISSION_DENIED)) => {
                "Sign in as a user who may do this, or use as_service() for work of the program itself."
            }
            (Kind::Unauthorized | Kind::Forbidden, Some(Of::SecureUpload), _) => {
                "Sign in as the user whose id the upload names."
            }
            (Kind::Unauthorized, ..) => "Sign in, and sign in again if the session has ended.",
            (Kind::Forbidden, ..) => "Sign in as the owner, or use as_service() for work of the program itself.",
            (Kind::RateLimited, ..) => "Wait for the time of retry_after, then try again.",
            (Kind::TooLarge, ..) => "Send less at a time, or raise the limit if the message names an option.",
            (Kind::Unavailable, _, Some(OUTCOME_UNKNOWN)) => {
                "Read the data to learn whether the write happened before you repeat it."
            }
            (Kind::Unavailable, ..) if self.status() == 507 || self.is_disk_full() => {
                "Free space on the disk, then try again. A database in memory has at most 1 GiB."
            }
            (
                Kind::Unavailable,
                Some(Of::HandleEvents | Of::Subscribe | Of::Changes | Of::LiveQuery | Of::FeedCursor),
                None,
            ) => "Switch the change feed on with realtime.start(), or try again when the database answers.",
            (Kind::Unavailable, ..) if self.has_moved() => {
                "Open the place to which the database has moved; if that was given up, call reopen_for_writes()."
            }
            (Kind::Unavailable, _, Some(READ_ONLY)) => {
                "Check that this process may write to the database file, and that database_url names the primary; wait for the end of \
                 a move into this database."
            }
            (Kind::Unavailable, _, Some(TOO_MANY_CONNECTIONS)) => {
                "Wait for other calls to end; raise max_connections, or the server's limit if the server refuses; on SQLite, end the exports \
                 that are open."
            }
            (Kind::Unavailable, _, Some(IO_ERROR)) => {
                "If the files of the database were removed or replaced, close every client, put the right files back or restore a \
                 backup, and open a new client; else check the disk and the rights on the files."
            }
            (Kind::Unavailable, ..) => {
                "Try again later; if it lasts, check the disk and the servers that database_url, storage_url and catalog_url name."
            }
            (Kind::Closed, ..) if self.is_handle_closed() => {
                "Make a new handle of the client, such as with as_service() or as_user()."
            }
            (Kind::Closed, ..) => {
                "Open a new client; a child that was forked while a client was open can open none, so fork first, or start a program."
            }
            (Kind::Config, _, Some(NO_DATABASE)) if self.is_left_unmade() => {
                "Check that data_dir and database_url name the right database; with migrate=true, open makes what is missing."
            }
            (Kind::Config, _, Some(NO_DATABASE)) => {
                "Correct the name of the database in database_url, or create the database on the server: open creates none there."
            }
            (Kind::Config, _, Some(NOT_MIGRATED)) => "Back the database up, then open it once with migrate=true.",
            (Kind::Config, Some(Of::Backup), _) => {
                "Correct the path as the message says: a backup needs a folder that exists and that this process may write to."
            }
            (Kind::Config, Some(Of::Restore), _) => {
                "Correct the path as the message says: a restore reads a backup of this library, and writes to a folder without a \
                 database and files."
            }
            (Kind::Config, Some(Of::MoveTo), _) => "Correct the source or the target of the move as the message says.",
            (Kind::Config, ..) if self.names_option() => "Correct the option as the message says.",
            (Kind::Config, ..) => {
                "Remove the cause that the message names; data_dir and database_url say which database is opened."
            }
            (Kind::Internal, ..) if is_of_files => {
                "Look at the log and at the cause; repair() finds files whose bytes are missing or damaged."
            }
            (Kind::Internal, ..) => "Look at the log and at the cause; report it if disk and database are sound.",
            (Kind::Conflict, Some(Of::MoveTo), _) => "Stop the writers of the source, then call again.",
            (Kind::Conflict, ..) => {
                "Read the file again, make the change in the new version, and write it with the new etag."
            }
            (Kind::CursorExpired, ..) => "Read the rows again, then subscribe without the cursor; live() does both.",
            (Kind::QuotaExceeded, Some(Of::LinkIdentity), _) => "Unlink a key that is no longer used.",
            (Kind::QuotaExceeded, ..) => "Delete what is no longer needed, or raise the option that the message names.",
            (Kind::Cancelled, ..) => "A callback of the program ended the call: look at what it returned or raised.",
        }
    }

    /// Whether the message is about an option, by itself, in a variable of the environment or in a URL.
    fn names_option(&self) -> bool {
        let starts = ["Option ", "Unknown option ", "Environment variable ", "Bad configuration URL"];
        starts.iter().any(|start| self.message().starts_with(start))
    }
}

impl Operation {
    /// Whether the operation refuses every caller but the service.
    const fn is_for_service(self) -> bool {
        use Operation as Of;
        matches!(
            self,
            Of::SaveCommunityConfig
                | Of::SaveCommunityDomain
                | Of::DeleteCommunityDomain
                | Of::ListCommunityConfigs
                | Of::ListCommunityDomains
                | Of::ListSpaceRegistrations
                | Of::ListSpaces
                | Of::SetOwner
                | Of::ListUsers
                | Of::FindUser
                | Of::SetPassword
                | Of::ImportCredentials
                | Of::Identities
                | Of::CreateRecoveryToken
                | Of::CreateVerificationToken
                | Of::RotateUrlKey
                | Of::ExportFiles
                | Of::Repair
                | Of::StopRealtime
                | Of::ExportRows
                | Of::ImportRows
                | Of::SessionsOf
                | Of::EndSession
                | Of::EndSessions
        )
    }
}
