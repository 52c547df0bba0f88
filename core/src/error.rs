//! One error for every operation: what kind, during which operation, SPEC 7's sentence, and the cause.
//!
//! Invariant: `Display` is the whole sentence a user may be shown, prefix and all, and no error holds a password,
//! a token or a key. Lower layers make errors without an operation; the service that was called names it with
//! [`Error::with_operation`], once, so that a message never carries two prefixes.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

/// What a fallible operation of this library returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Source = Arc<dyn std::error::Error + Send + Sync>;

/// Why an operation failed.
///
/// Cheap to clone: callers that waited for the same work share one error.
#[derive(Clone)]
pub struct Error(Arc<Parts>);

#[derive(Clone)]
struct Parts {
    kind: ErrorKind,
    operation: Option<Operation>,
    message: Cow<'static, str>,
    code: Option<Cow<'static, str>>,
    status: Option<u16>,
    retry_after: Option<Duration>,
    source: Option<Source>,
}

/// The kind of an [`Error`]: what a program branches on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A unique value is taken (SQLSTATE 23505).
    AlreadyExists,
    /// A referenced row does not exist (SQLSTATE 23503).
    ReferenceMissing,
    /// A required field has no value (SQLSTATE 23502).
    FieldMissing,
    /// A table of the database is gone (SQLSTATE 42P01).
    TableMissing,
    /// The row or file does not exist, or the caller may not know that it does.
    NotFound,
    /// An argument is malformed or out of range.
    InvalidInput,
    /// The caller is nobody, or its credentials or session are not valid.
    Unauthorized,
    /// A policy denies this to the caller.
    Forbidden,
    /// Too many attempts; [`Error::retry_after`] says when to come back.
    RateLimited,
    /// A file or body is over its size limit.
    TooLarge,
    /// An outside system does not answer, or there is nothing to answer from. Worth another try.
    Unavailable,
    /// The client was closed.
    Closed,
    /// The configuration is wrong; the message names the option.
    Config,
    /// A fault of the library or of the database below it.
    Internal,
}

impl ErrorKind {
    /// Every kind, in the order of the C header's status numbers.
    pub const ALL: [ErrorKind; 14] = [
        ErrorKind::AlreadyExists,
        ErrorKind::ReferenceMissing,
        ErrorKind::FieldMissing,
        ErrorKind::TableMissing,
        ErrorKind::NotFound,
        ErrorKind::InvalidInput,
        ErrorKind::Unauthorized,
        ErrorKind::Forbidden,
        ErrorKind::RateLimited,
        ErrorKind::TooLarge,
        ErrorKind::Unavailable,
        ErrorKind::Closed,
        ErrorKind::Config,
        ErrorKind::Internal,
    ];

    /// The name of the kind as Python's `Error.kind` has it: `already_exists`, `not_found`, …
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorKind::AlreadyExists => "already_exists",
            ErrorKind::ReferenceMissing => "reference_missing",
            ErrorKind::FieldMissing => "field_missing",
            ErrorKind::TableMissing => "table_missing",
            ErrorKind::NotFound => "not_found",
            ErrorKind::InvalidInput => "invalid_input",
            ErrorKind::Unauthorized => "unauthorized",
            ErrorKind::Forbidden => "forbidden",
            ErrorKind::RateLimited => "rate_limited",
            ErrorKind::TooLarge => "too_large",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::Closed => "closed",
            ErrorKind::Config => "config",
            ErrorKind::Internal => "internal",
        }
    }
}

/// Declares the operations: variant, name in Python and C, and the words before `failed: `.
macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $words:literal;)*) => {
        /// The operation an [`Error`] happened in; its prefix opens the message (SPEC 7).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Operation { $(#[doc = concat!("`", $name, "`")] $variant,)* }

        impl Operation {
            /// Every operation.
            pub const ALL: &'static [Operation] = &[$(Operation::$variant,)*];

            /// The method's name, the same in Rust, Python and C.
            pub const fn name(self) -> &'static str {
                match self { $(Operation::$variant => $name,)* }
            }

            /// The words that open the message, up to and with the space behind the colon.
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
    RefreshMiniApps, "refresh", "Refresh mini apps";
    SaveCommunityConfig, "save_community_config", "Save community config";
    GetActiveCommunityConfig, "get_active_community_config", "Get active community config";
    SaveCommunityDomain, "save_community_domain", "Save community domain";
    DeleteCommunityDomain, "delete_community_domain", "Delete community domain";
    UpdateNavigation, "update_navigation", "Update navigation";
    ResolveCommunity, "resolve_community", "Resolve community";
    RegisterSpace, "register_space", "Register space";
    GetSpaceRegistration, "get_space_registration", "Get space registration";
    CreateSpace, "create_space", "Create space";
    CreateSpaces, "create_spaces", "Create spaces";
    GetSpace, "get_space", "Get space";
    UpdateSpace, "update_space", "Update space";
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
    Backup, "backup", "Backup";
    Restore, "restore", "Restore";
}

/// SPEC 7's table of database errors: SQLSTATE, kind, message.
pub const DATABASE_ERRORS: [(&str, ErrorKind, &str); 4] = [
    ("23505", ErrorKind::AlreadyExists, "Record already exists"),
    ("23503", ErrorKind::ReferenceMissing, "Referenced record not found"),
    ("23502", ErrorKind::FieldMissing, "Required field is missing"),
    ("42P01", ErrorKind::TableMissing, "Database table not found"),
];

impl Error {
    /// An error of `kind` that says `message`.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Error {
        Error(Arc::new(Parts {
            kind,
            operation: None,
            message: message.into(),
            code: None,
            status: None,
            retry_after: None,
            source: None,
        }))
    }

    pub(crate) fn invalid_input(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::InvalidInput, message)
    }

    pub(crate) fn config(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Config, message)
    }

    pub(crate) fn unavailable(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Unavailable, message)
    }

    pub(crate) fn closed() -> Error {
        Error::new(ErrorKind::Closed, "The client is closed")
    }

    /// A row that is missing or hidden: nobody is told which.
    pub(crate) fn not_found() -> Error {
        Error::new(ErrorKind::NotFound, "Record not found")
    }

    /// An insert that the table's policy forbids, in PostgreSQL's words.
    pub(crate) fn new_row_violates(table: &str) -> Error {
        let message = format!("new row violates row-level security policy for table \"{table}\"");
        Error::database(Some("42501"), ErrorKind::Forbidden, message)
    }

    /// An operation that needs more than the caller has, in PostgreSQL's words.
    pub(crate) fn permission_denied(table: &str, is_anonymous: bool) -> Error {
        let kind = if is_anonymous { ErrorKind::Unauthorized } else { ErrorKind::Forbidden };
        Error::database(Some("42501"), kind, format!("permission denied for table {table}"))
    }

    /// A word that a column's check refuses.
    pub(crate) fn check_violation(table: &str, column: &str, words: &[&str]) -> Error {
        let message = format!("{column} of {table} is one of {}", words.join(", "));
        Error::database(Some("23514"), ErrorKind::InvalidInput, message)
    }

    /// A database's failure in SPEC 7's words. `kind` decides only for codes outside SPEC 7's table.
    pub(crate) fn database(
        code: Option<impl Into<Cow<'static, str>>>,
        kind: ErrorKind,
        message: impl fmt::Display,
    ) -> Error {
        let Some(code) = code.map(Into::into) else {
            return Error::new(kind, "Unknown database error");
        };
        let known = DATABASE_ERRORS.iter().find(|row| row.0 == code);
        let error = match known {
            Some(&(_, kind, sentence)) => Error::new(kind, sentence),
            None => Error::new(kind, format!("Database error: {message}")),
        };
        error.with(|parts| parts.code = Some(code))
    }

    /// Names the operation, unless a deeper call already has.
    pub(crate) fn with_operation(self, operation: Operation) -> Error {
        match self.0.operation {
            Some(_) => self,
            None => self.with(|parts| parts.operation = Some(operation)),
        }
    }

    pub(crate) fn retry_in(self, wait: Duration) -> Error {
        self.with(|parts| parts.retry_after = Some(wait))
    }

    /// Caused by an error of ours that came first; the SQLSTATE is still its.
    pub(crate) fn because_of(self, first: Error) -> Error {
        let code = first.0.code.clone();
        self.caused_by(first).with(|parts| parts.code = code)
    }

    pub(crate) fn caused_by(self, source: impl std::error::Error + Send + Sync + 'static) -> Error {
        self.with(|parts| parts.source = Some(Arc::new(source)))
    }

    fn with(mut self, change: impl FnOnce(&mut Parts)) -> Error {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation that failed, when one was under way.
    pub fn operation(&self) -> Option<Operation> {
        self.0.operation
    }

    /// The message without the operation's prefix.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The SQLSTATE, for a failure that has one (`23505`, `42P01`, …).
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The file store's status (SPEC 7), for a failure of files.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// How long to wait before another try, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Whether the same call may succeed later without a change of its arguments.
    pub fn is_retryable(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Unavailable | ErrorKind::RateLimited)
    }
}

/// Runs `work` as `operation`: an error that names no operation yet gets this one.
pub(crate) async fn operation<T>(operation: Operation, work: impl Future<Output = Result<T>>) -> Result<T> {
    work.await.with_operation(operation)
}

/// Names the operation in a result's error.
pub(crate) trait WithOperation {
    fn with_operation(self, operation: Operation) -> Self;
}

impl<T> WithOperation for Result<T> {
    fn with_operation(self, operation: Operation) -> Self {
        self.map_err(|error| error.with_operation(operation))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = self.0.operation {
            f.write_str(operation.prefix())?;
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
        if let Some(status) = self.0.status {
            out.field("status", &status);
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
mod tests {
    use super::*;

    #[test]
    fn database_errors_have_the_sentences_of_spec_7() {
        for (code, kind, sentence) in DATABASE_ERRORS {
            let error = Error::database(Some(code), ErrorKind::Internal, "driver's words");
            assert_eq!((error.kind(), error.message(), error.code()), (kind, sentence, Some(code)));
        }
        let other = Error::database(Some("23514"), ErrorKind::InvalidInput, "check failed");
        assert_eq!(other.to_string(), "Database error: check failed");
        let none = Error::database(None::<&str>, ErrorKind::Internal, "driver's words");
        assert_eq!(none.to_string(), "Unknown database error");
    }

    #[test]
    fn the_deepest_operation_names_the_error() {
        let error = Error::closed().with_operation(Operation::SearchMiniApps).with_operation(Operation::Open);
        assert_eq!(error.to_string(), "Search mini apps failed: The client is closed");
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = Operation::ALL.iter().map(|operation| operation.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Operation::ALL.len());
    }
}
