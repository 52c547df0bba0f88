//! Errors: the kind, the operation that failed, the message, and the cause.
//!
//! Invariant: `Display` writes the whole message, prefix included. No error contains a password, a token or a key. Lower
//! layers create errors without an operation; the public method sets the operation once, so that a message has one
//! prefix.
//!
//! A program branches on [`Error::kind`] and shows the error to its user:
//!
//! ```
//! use townsquare::{ErrorKind, Uuid, blocking::Client};
//!
//! fn show_space(client: &Client, id: Uuid) {
//!     match client.spaces().get_space(id) {
//!         Ok(space) => println!("{:?}", space.name),
//!         Err(error) if error.kind() == ErrorKind::NotFound => println!("There is no such space."),
//!         Err(error) => println!("{error}"), // for example "Get space failed: The client is closed"
//!     }
//! }
//! ```

mod create;
mod explanation;
mod file_store;
mod run_operation;

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

pub(crate) use self::file_store::{NO_SPACE, is_out_of_descriptors, is_out_of_space};
pub(crate) use self::run_operation::operation;

/// The result of a fallible operation of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of every operation of this library.
///
/// `Display` writes the prefix of the operation, then the message. The message ends with the reason if there is one:
/// `Create space failed: Required field is missing: spaces.name`. It is a sentence for people. A program branches on
/// [`kind`](Error::kind) and never on the text. [`explanation`](Error::explanation) says what to do about the failure, and
/// [`status`](Error::status) is the HTTP status for it.
///
/// Cloning is cheap: callers that waited for the same work receive clones of one error.
///
/// # Examples
///
/// ```
/// use townsquare::{Config, ErrorKind};
///
/// let error = Config::new().set("colour", "red").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Config);
/// assert!(error.to_string().starts_with("Unknown option"));
/// ```
///
/// A missing row and a row that the caller may not see have the same error:
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
/// use townsquare::{ErrorKind, Operation, Uuid};
///
/// let error = client.spaces().get_space(Uuid::new_v4()).unwrap_err();
/// assert_eq!((error.kind(), error.operation()), (ErrorKind::NotFound, Some(Operation::GetSpace)));
/// assert_eq!(error.to_string(), "Get space failed: Record not found");
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Clone)]
pub struct Error(Arc<ErrorInner>);

#[derive(Clone)]
struct ErrorInner {
    kind: ErrorKind,
    operation: Option<Operation>,
    /// The sentence of SPEC 7. With a reason, a colon and the reason follow.
    message: Cow<'static, str>,
    /// The offset of the reason in `message`.
    reason_at: Option<usize>,
    code: Option<Cow<'static, str>>,
    /// The status, if it is not the kind's.
    status: Option<u16>,
    retry_after: Option<Duration>,
    row: Option<usize>,
    column: Option<Cow<'static, str>>,
    /// Whether repeating the call has the effect of one call.
    is_idempotent: bool,
    /// Whether the database has moved to another place.
    has_moved: bool,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Declares the kinds: documentation, variant, the name that `as_str` returns, and the HTTP status.
macro_rules! error_kinds {
    ($($(#[$doc:meta])+ $variant:ident, $name:literal, $status:literal;)*) => {
        /// The kind of an [`Error`], for programs that branch on it.
        ///
        /// Later versions may have more kinds, so a `match` has an arm for all others.
        ///
        /// ```
        /// use townsquare::{Error, ErrorKind};
        ///
        /// /// What a web page says.
        /// fn text(error: &Error) -> String {
        ///     match error.kind() {
        ///         ErrorKind::NotFound => "There is no such page.".to_owned(),
        ///         ErrorKind::Unauthorized => "Please sign in.".to_owned(),
        ///         _ => format!("Error {}", error.status()),
        ///     }
        /// }
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind { $($(#[$doc])+ $variant,)* }

        impl ErrorKind {
            /// Every kind, in the order of the status numbers of the C header.
            pub const ALL: [ErrorKind; [$(ErrorKind::$variant),*].len()] = [$(ErrorKind::$variant),*];

            /// The name of the kind, as in Python's `Error.kind`: `already_exists`, `not_found`, …
            ///
            /// ```
            /// assert_eq!(townsquare::ErrorKind::NotFound.as_str(), "not_found");
            /// ```
            pub const fn as_str(self) -> &'static str {
                match self { $(ErrorKind::$variant => $name,)* }
            }

            /// The HTTP status of the kind. [`Error::status`] is more exact for some errors, such as 507 for a full disk.
            ///
            /// ```
            /// assert_eq!(townsquare::ErrorKind::NotFound.status(), 404);
            /// ```
            pub const fn status(self) -> u16 {
                match self { $(ErrorKind::$variant => $status,)* }
            }
        }
    };
}

error_kinds! {
    /// A unique value exists already (SQLSTATE 23505).
    AlreadyExists, "already_exists", 409;
    /// A referenced row does not exist (SQLSTATE 23503).
    ReferenceMissing, "reference_missing", 409;
    /// A required field has no value (SQLSTATE 23502).
    FieldMissing, "field_missing", 400;
    /// A table of the database does not exist (SQLSTATE 42P01).
    TableMissing, "table_missing", 500;
    /// The row or file does not exist, or a policy hides it from the caller.
    NotFound, "not_found", 404;
    /// An argument is malformed or out of range.
    InvalidInput, "invalid_input", 400;
    /// The caller is anonymous, or its credentials or session are not valid.
    Unauthorized, "unauthorized", 401;
    /// A policy denies the operation to the caller.
    Forbidden, "forbidden", 403;
    /// Too many attempts. [`Error::retry_after`] returns the time to wait.
    RateLimited, "rate_limited", 429;
    /// A text, a JSON value, a list of new rows, a file or a request body is larger than its limit.
    TooLarge, "too_large", 413;
    /// An outside system does not answer, or there is no catalog yet. A retry may succeed.
    Unavailable, "unavailable", 503;
    /// The client is closed.
    Closed, "closed", 503;
    /// The configuration is not valid. The message names the option.
    Config, "config", 500;
    /// A fault of the library or of its database.
    Internal, "internal", 500;
    /// The file has another version than `if_match` names: somebody else has written it since. Or the source of `move_to` was
    /// written meanwhile.
    Conflict, "conflict", 412;
    /// The change feed no longer keeps the changes after the cursor, or the cursor is of another incarnation or history of the
    /// database.
    CursorExpired, "cursor_expired", 410;
    /// A callback of the program cancelled the call.
    Cancelled, "cancelled", 500;
    /// The caller would have more than a quota allows: `max_owner_bytes` ([`Error::status`] is 413), `max_owner_files`,
    /// `max_owner_spaces`, `max_space_fidgets`, or 100 identity keys (409).
    QuotaExceeded, "quota_exceeded", 409;
}

/// Declares the operations: variant, name of the method, and the words before ` failed: `.
macro_rules! operations {
    ($($variant:ident, $name:literal, $words:literal;)*) => {
        /// The operation in which an [`Error`] happened. Its prefix, such as `Create space failed: `, starts the text
        /// of the error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Operation { $(#[doc = concat!("`", $name, "`")] $variant,)* }

        impl Operation {
            /// Every operation.
            pub const ALL: &'static [Operation] = &[$(Operation::$variant,)*];

            /// The name of the method, which is the same in Rust, Python and C.
            ///
            /// ```
            /// assert_eq!(townsquare::Operation::GetSpace.name(), "get_space");
            /// ```
            pub const fn name(self) -> &'static str {
                match self { $(Operation::$variant => $name,)* }
            }

            /// The prefix of the message, with the colon and the space after it.
            ///
            /// ```
            /// assert_eq!(townsquare::Operation::GetSpace.prefix(), "Get space failed: ");
            /// ```
            pub const fn prefix(self) -> &'static str {
                match self { $(Operation::$variant => concat!($words, " failed: "),)* }
            }
        }
    };
}

operations! {
    Open, "open", "Open";
    GetTrendingMiniApps, "get_trending_mini_apps", "Get trending mini apps";
    GetMiniAppsByCategory, "get_mini_apps_by_category", "Get mini apps by category";
    SearchMiniApps, "search_mini_apps", "Search mini apps";
    GetNewMiniApps, "get_new_mini_apps", "Get new mini apps";
    GetSimilarMiniApps, "get_similar_mini_apps", "Get similar mini apps";
    GetMiniApp, "get_mini_app", "Get mini app";
    SuggestMiniApps, "suggest_mini_apps", "Suggest mini apps";
    Categories, "categories", "List categories";
    Networks, "networks", "List networks";
    RefreshMiniApps, "refresh", "Refresh mini apps";
    SaveCommunityConfig, "save_community_config", "Save community config";
    GetActiveCommunityConfig, "get_active_community_config", "Get active community config";
    SaveCommunityDomain, "save_community_domain", "Save community domain";
    DeleteCommunityDomain, "delete_community_domain", "Delete community domain";
    UpdateNavigation, "update_navigation", "Update navigation";
    ResolveCommunity, "resolve_community", "Resolve community";
    ListCommunityConfigs, "list_community_configs", "List community configs";
    ListCommunityDomains, "list_community_domains", "List community domains";
    ListSpaceRegistrations, "list_space_registrations", "List space registrations";
    RegisterSpace, "register_space", "Register space";
    GetSpaceRegistration, "get_space_registration", "Get space registration";
    CreateSpace, "create_space", "Create space";
    CreateSpaces, "create_spaces", "Create spaces";
    GetSpace, "get_space", "Get space";
    UpdateSpace, "update_space", "Update space";
    ListSpaces, "list_spaces", "List spaces";
    SetOwner, "set_owner", "Set owner";
    DeleteSpace, "delete_space", "Delete space";
    GetUserSpaces, "get_user_spaces", "Get user spaces";
    GetPublicSpaces, "get_public_spaces", "Get public spaces";
    GetSpaceWithFidgets, "get_space_with_fidgets", "Get space with fidgets";
    CreateFidget, "create_fidget", "Create fidget";
    CreateFidgets, "create_fidgets", "Create fidgets";
    SavePositions, "save_positions", "Save positions";
    GetFidget, "get_fidget", "Get fidget";
    UpdateFidget, "update_fidget", "Update fidget";
    DeleteFidget, "delete_fidget", "Delete fidget";
    GetSpaceFidgets, "get_space_fidgets", "Get space fidgets";
    AsUser, "as_user", "Act as user";
    SignUp, "sign_up", "Sign up";
    SignIn, "sign_in", "Sign in";
    SignOut, "sign_out", "Sign out";
    GetSession, "get_session", "Get session";
    RefreshSession, "refresh_session", "Refresh session";
    SetSession, "set_session", "Set session";
    UpdateUser, "update_user", "Update user";
    DeleteUser, "delete_user", "Delete user";
    LinkIdentity, "link_identity", "Link identity";
    UnlinkIdentity, "unlink_identity", "Unlink identity";
    Identities, "identities", "List identities";
    IdentityAudience, "identity_audience", "Get identity audience";
    CreateRecoveryToken, "create_recovery_token", "Create recovery token";
    Recover, "recover", "Recover";
    CreateVerificationToken, "create_verification_token", "Create verification token";
    VerifyEmail, "verify_email", "Verify email";
    ListUsers, "list_users", "List users";
    FindUser, "find_user", "Find user";
    SetPassword, "set_password", "Set password";
    ImportCredentials, "import_credentials", "Import credentials";
    Upload, "upload", "Upload";
    UploadFrom, "upload_from", "Upload";
    SecureUpload, "secure_upload", "Upload";
    OpenWriter, "writer", "Upload";
    Download, "download", "Download";
    DownloadTo, "download_to", "Download";
    OpenReader, "reader", "Download";
    DeleteFile, "delete", "Delete";
    DeletePrefix, "delete_prefix", "Delete files";
    FileExists, "exists", "Check file";
    StatFile, "stat", "Get file";
    ListFiles, "list", "List files";
    CopyFile, "copy", "Copy";
    MoveFile, "move", "Move";
    SignUrl, "signed_url", "Sign URL";
    RotateUrlKey, "rotate_url_key", "Rotate URL key";
    HandleFile, "handle_file", "Handle file";
    ExportFiles, "export_files", "Export files";
    Repair, "repair", "Repair";
    StartRealtime, "start", "Start the change feed";
    StopRealtime, "stop", "Stop the change feed";
    Subscribe, "subscribe", "Subscribe";
    Changes, "changes", "Read changes";
    LiveQuery, "live", "Live query";
    FeedCursor, "cursor", "Get cursor";
    HandleEvents, "handle_events", "Handle events";
    RealtimeStats, "realtime_stats", "Get realtime stats";
    Check, "check", "Check";
    Backup, "backup", "Backup";
    Restore, "restore", "Restore";
    Metrics, "metrics", "Get metrics";
    MoveTo, "move_to", "Move";
    ReopenForWrites, "reopen_for_writes", "Reopen for writes";
    ExportRows, "export_rows", "Export rows";
    ImportRows, "import_rows", "Import rows";
    SessionsOf, "sessions_of", "List sessions";
    EndSession, "end_session", "End session";
    EndSessions, "end_sessions", "End sessions";
    ReadPosition, "read_position", "Get read position";
    ReadAfter, "read_after", "Read after";
}

/// The database errors that have a message of their own: SQLSTATE, kind, message.
///
/// ```
/// use townsquare::{ErrorKind, error::DATABASE_ERRORS};
///
/// assert!(DATABASE_ERRORS.contains(&("23505", ErrorKind::AlreadyExists, "Record already exists")));
/// ```
pub const DATABASE_ERRORS: [(&str, ErrorKind, &str); 4] = [
    ("23505", ErrorKind::AlreadyExists, "Record already exists"),
    ("23503", ErrorKind::ReferenceMissing, "Referenced record not found"),
    ("23502", ErrorKind::FieldMissing, "Required field is missing"),
    ("42P01", ErrorKind::TableMissing, "Database table not found"),
];

/// The file store errors that have a message of their own: HTTP status, kind, message.
///
/// ```
/// use townsquare::{ErrorKind, error::FILE_ERRORS};
///
/// assert!(FILE_ERRORS.contains(&(404, ErrorKind::NotFound, "File not found")));
/// ```
pub const FILE_ERRORS: [(u16, ErrorKind, &str); 5] = [
    (400, ErrorKind::InvalidInput, "Invalid file or request"),
    (401, ErrorKind::Unauthorized, "Unauthorized file access"),
    (403, ErrorKind::Forbidden, "Forbidden file access"),
    (404, ErrorKind::NotFound, "File not found"),
    (413, ErrorKind::TooLarge, "File too large"),
];

/// The message of `secure_upload` for a user other than the caller (SPEC 5.5).
const UNAUTHORIZED_UPLOAD: &str = "Unauthorized file upload";

/// The message of a database failure without a code (SPEC 7).
const UNKNOWN_DATABASE_ERROR: &str = "Unknown database error";

/// Stands between the sentence and the reason.
const REASON_SEPARATOR: &str = ": ";

/// SQLSTATE `transaction_resolution_unknown`.
const OUTCOME_UNKNOWN: &str = "08007";

impl Error {
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation that failed; `None` for errors outside an operation, for example of [`Config`](crate::Config).
    pub fn operation(&self) -> Option<Operation> {
        self.0.operation
    }

    /// The message without the prefix of the operation. It ends with the reason if there is one.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The part of the message after its general sentence: `spaces.name` of `Required field is missing: spaces.name`.
    /// It is for the developer of the program. A server that shows errors to strangers leaves it out.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// let error = client.storage().stat("assets", "cats//cat.png").unwrap_err();
    /// let reason = error.reason().unwrap(); // which segment of the path is empty
    /// assert_eq!(error.message(), format!("Invalid file or request: {reason}"));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn reason(&self) -> Option<&str> {
        self.0.reason_at.map(|at| &self.0.message[at..])
    }

    /// The message without the reason.
    pub(crate) fn sentence(&self) -> &str {
        let end = self.0.reason_at.map_or(self.0.message.len(), |at| at - REASON_SEPARATOR.len());
        &self.0.message[..end]
    }

    /// The SQLSTATE of a database error (`23505`, `42P01`, …). Both engines use the same codes. Some errors of `open` and
    /// `restore` have one, too: `3D000` for a missing database, `55000` for one that lacks migrations, `XX001` for a damaged file.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The HTTP status for the error: the error's own status if it has one, as a failure of the file store does, else
    /// the status of the [kind](ErrorKind::status).
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// let error = client.spaces().get_space(townsquare::Uuid::new_v4()).unwrap_err();
    /// assert_eq!(error.status(), 404);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn status(&self) -> u16 {
        self.0.status.unwrap_or(self.0.kind.status())
    }

    /// The time to wait before a retry, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The index of the row that failed, for calls that create many rows.
    ///
    /// ```
    /// use townsquare::spaces::NewSpace;
    /// # fn example(client: &townsquare::blocking::Client) {
    /// let spaces = vec![NewSpace::named("Chess"), NewSpace::default()];
    /// let error = client.spaces().create_spaces(spaces).unwrap_err();
    /// assert_eq!((error.row(), error.column()), (Some(1), Some("name")));
    /// # }
    /// ```
    pub fn row(&self) -> Option<usize> {
        self.0.row
    }

    /// The column that has no value ([`ErrorKind::FieldMissing`]), that refers to a missing row
    /// ([`ErrorKind::ReferenceMissing`], PostgreSQL only), or that cannot be read (SQLSTATE `XX001`).
    pub fn column(&self) -> Option<&str> {
        self.0.column.as_deref()
    }

    /// Whether the same call with the same arguments may succeed later and does no harm if the failed call took effect.
    ///
    /// True for the kinds `Unavailable` and `RateLimited`, with two exceptions. A write to a database that has moved to another
    /// place (`25006`) fails until [`reopen_for_writes`](crate::Client::reopen_for_writes). A write on PostgreSQL whose connection was
    /// lost before the server answered may have happened. Its error has the code `08007` and says `outcome unknown`. It is
    /// retryable only if the call was idempotent, because a repeated insert would insert a second row. Read the data to
    /// learn whether the write happened.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use townsquare::spaces::NewSpace;
    ///
    /// match client.spaces().create_space(NewSpace::named("Harbor")) {
    ///     Err(error) if error.is_retryable() => println!("Nothing happened: try again."),
    ///     Err(error) if error.code() == Some("08007") => println!("Look whether the space is there."),
    ///     result => println!("{}", result?.name),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_retryable(&self) -> bool {
        match self.0.kind {
            _ if self.has_moved() => false,
            ErrorKind::Unavailable if self.is_outcome_unknown() => self.0.is_idempotent,
            kind => matches!(kind, ErrorKind::Unavailable | ErrorKind::RateLimited),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.operation {
            Some(operation) if self.0.message != UNAUTHORIZED_UPLOAD => f.write_str(operation.prefix())?,
            _ => {}
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Error");
        out.field("kind", &self.0.kind).field("message", &format_args!("{self}"));
        if let Some(code) = &self.0.code {
            out.field("code", code);
        }
        out.field("status", &self.status());
        if let Some(row) = self.0.row {
            out.field("row", &row);
        }
        if let Some(column) = &self.0.column {
            out.field("column", column);
        }
        if let Some(source) = &self.0.source {
            out.field("source", source);
        }
        out.finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests;
