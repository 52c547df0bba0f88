//! Tests of errors: the tables of SPEC 7, prefixes, and what may be repeated.

use super::*;

#[test]
fn database_errors_have_the_messages_of_spec_7() {
    for (code, kind, message) in DATABASE_ERRORS {
        let error = Error::database(Some(code), ErrorKind::Internal, "message of the driver");
        assert_eq!((error.kind(), error.message(), error.code()), (kind, message, Some(code)));
    }
    let other = Error::database(Some("23514"), ErrorKind::InvalidInput, "check failed");
    assert_eq!(other.to_string(), "Database error: check failed");
    let none = Error::database(None::<&str>, ErrorKind::Internal, "message of the driver");
    assert_eq!(none.to_string(), "Unknown database error");
}

#[test]
fn file_errors_have_the_messages_of_spec_7() {
    for (status, kind, message) in FILE_ERRORS {
        let error = Error::file(status, "the reason");
        assert_eq!((error.kind(), error.message(), error.status()), (kind, message, Some(status)));
        let source = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(source.as_deref(), Some("the reason"));
    }
    for (status, kind) in [(409, ErrorKind::AlreadyExists), (412, ErrorKind::Conflict), (500, ErrorKind::Internal)] {
        let error = Error::file(status, "the reason");
        assert_eq!((error.kind(), error.message()), (kind, "Storage error: the reason"));
        assert_eq!(error.status(), Some(status));
    }
    assert_eq!(Error::file(None, "the reason").message(), "Unknown storage error");
}

#[test]
fn the_error_of_secure_upload_has_no_prefix() {
    let error = Error::unauthorized_upload(false).with_operation(Operation::SecureUpload);
    assert_eq!((error.to_string().as_str(), error.status()), ("Unauthorized file upload", Some(403)));
    assert_eq!(Error::unauthorized_upload(true).kind(), ErrorKind::Unauthorized);
}

#[test]
fn the_operation_that_was_set_first_stays() {
    let error = Error::closed().with_operation(Operation::SearchMiniApps).with_operation(Operation::Open);
    assert_eq!(error.to_string(), "Search mini apps failed: The client is closed");
}

#[test]
fn a_write_of_unknown_outcome_is_retryable_only_if_it_is_idempotent() {
    let error = Error::outcome_unknown();
    assert_eq!((error.kind(), error.code(), error.is_retryable()), (ErrorKind::Unavailable, Some("08007"), false));
    assert!(error.message().starts_with("Database error: outcome unknown"), "{error}");
    assert!(error.of_idempotent_call().is_retryable());
    assert!(Error::unavailable("no answer").is_retryable());
    assert!(!Error::closed().of_idempotent_call().is_retryable());
}

#[test]
fn operation_names_are_unique() {
    let mut names: Vec<_> = Operation::ALL.iter().map(|operation| operation.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Operation::ALL.len());
}
