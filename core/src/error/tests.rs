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
    assert_eq!((none.reason(), none.sentence()), (None, none.message()));
    let refused = none.with_reason("localhost:5432: Connection refused").with_operation(Operation::Open);
    assert_eq!(refused.to_string(), "Open failed: Unknown database error: localhost:5432: Connection refused");
    assert_eq!(refused.reason(), Some("localhost:5432: Connection refused"));
    assert_eq!(refused.sentence(), "Unknown database error");
}

#[test]
fn a_message_that_quotes_a_long_text_is_cut() {
    let quoted = "ä".repeat(1 << 20);
    let error = Error::invalid_input(quoted.clone()).with_reason(quoted);
    let part = format!("{}…", "ä".repeat(8 << 10));
    assert_eq!((error.sentence(), error.reason()), (part.as_str(), Some(part.as_str())));
}

#[test]
fn file_errors_have_the_messages_of_spec_7() {
    for (status, kind, message) in FILE_ERRORS {
        let error = Error::file(status, "the reason");
        assert_eq!((error.kind(), error.sentence(), error.status()), (kind, message, status));
        assert_eq!(error.reason(), Some("the reason"));
        assert_eq!(error.message(), format!("{message}: the reason"));
    }
    for (status, kind) in [(409, ErrorKind::AlreadyExists), (412, ErrorKind::Conflict), (500, ErrorKind::Internal)] {
        let error = Error::file(status, "the reason");
        assert_eq!((error.kind(), error.message()), (kind, "Storage error: the reason"));
        assert_eq!(error.status(), status);
    }
    assert_eq!(Error::file(None, "the reason").message(), "Unknown storage error: the reason");
    assert_eq!(Error::file(404, "").message(), "File not found");
}

#[test]
fn the_error_of_secure_upload_has_no_prefix() {
    let error = Error::unauthorized_upload(false).with_operation(Operation::SecureUpload);
    assert_eq!((error.to_string().as_str(), error.status()), ("Unauthorized file upload", 403));
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
fn every_kind_has_a_status_and_an_explanation() {
    for kind in ErrorKind::ALL {
        for operation in [None].into_iter().chain(Operation::ALL.iter().copied().map(Some)) {
            let error = Error::new(kind, "message").with(|inner| inner.operation = operation);
            assert!((400..600).contains(&error.status()), "{kind:?}");
            let text = error.explanation();
            assert!(text.starts_with(char::is_uppercase) && text.ends_with('.') && !text.contains("  "), "{text}");
            assert_eq!(text.matches(". ").count(), 0, "one sentence: {text}");
        }
    }
}

#[test]
fn the_statuses_of_files_are_those_of_their_kinds() {
    for (status, kind, _) in FILE_ERRORS {
        assert_eq!(kind.status(), status);
    }
    assert_eq!(Error::file(507, "").status(), 507, "a status of its own");
    assert_eq!(Error::over_quota(413, "x").status(), 413);
}

#[test]
fn a_reason_stays_apart_from_the_sentence() {
    let error = Error::field_missing("name").inside("rows[1]").with_operation(Operation::ImportRows);
    assert_eq!((error.reason(), error.sentence()), (Some("rows[1].name"), "Required field is missing"));
    let error = Error::already_exists("users.email").of_table("users");
    assert_eq!((error.reason(), error.sentence()), (Some("table users: users.email"), "Record already exists"));
    let error = Error::database(None::<&str>, ErrorKind::Internal, "").of_table("users");
    assert_eq!((error.reason(), error.sentence()), (Some("table users"), "Unknown database error"));
}

#[test]
fn an_explanation_names_an_option_only_if_the_message_does() {
    let of_option = "Correct the option as the message says.";
    for message in ["Option data_dir is empty", "Unknown option \"x\".", "Environment variable X: Option x is empty"] {
        for operation in [None, Some(Operation::Open)] {
            let error = Error::config(message).with(|inner| inner.operation = operation);
            assert_eq!(error.explanation(), of_option, "{message}");
        }
    }
    for (operation, word) in [
        (Operation::Backup, "path"),
        (Operation::Restore, "path"),
        (Operation::MoveTo, "target"),
        (Operation::Open, "database"),
    ] {
        let text = Error::config("/srv/town exists").with_operation(operation).explanation();
        assert!(text.contains(word) && !text.contains("option"), "{text}");
    }
}

#[test]
fn an_open_with_migrate_makes_no_database_on_a_server() {
    let missing = Error::no_database("There is no database town.db").with_operation(Operation::Open);
    assert!(missing.explanation().contains("migrate=true"), "{}", missing.explanation());
    let of_server = Error::database(Some("3D000"), ErrorKind::Internal, "database \"town\" does not exist");
    let refused = Error::config("Option database_url: cannot connect").because_of(of_server);
    let refused = refused.with_operation(Operation::Open);
    assert_eq!(refused.code(), missing.code());
    assert!(!refused.explanation().contains("migrate"), "{}", refused.explanation());
}

#[cfg(unix)]
#[test]
fn too_many_open_files_have_an_explanation_whatever_fails() {
    use std::io;

    for errno in [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE] {
        let of_database = Error::database(Some("58030"), ErrorKind::Unavailable, "x").caused_by(io::Error::from(errno));
        let of_open = Error::config("Option data_dir: x").because_of(of_database.clone());
        for error in [of_database, of_open, Error::no_descriptors(errno.into())] {
            for operation in [Operation::Open, Operation::Upload, Operation::GetSpace] {
                let text = error.clone().with_operation(operation).explanation();
                assert!(text.contains("ulimit -n"), "{text}");
            }
        }
    }
    let other = Error::unavailable("x").caused_by(io::Error::from(io::ErrorKind::ConnectionRefused));
    assert!(!other.explanation().contains("ulimit"), "{}", other.explanation());
}

#[test]
fn a_refusal_says_what_to_do() {
    for (error, sentence) in [
        (Error::permission_denied("users", true), "Database error: permission denied for table users"),
        (
            Error::new_row_violates("spaces"),
            "Database error: new row violates row-level security policy for table \"spaces\"",
        ),
    ] {
        assert_eq!(error.sentence(), sentence);
        assert!(error.to_string().starts_with(sentence) && error.to_string().contains("as_service()"), "{error}");
        assert!(error.explanation().contains("as_service()"));
    }
}

#[test]
fn operation_names_are_unique() {
    let mut names: Vec<_> = Operation::ALL.iter().map(|operation| operation.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Operation::ALL.len());
}
