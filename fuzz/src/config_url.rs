//! Configuration URLs. A URL is read the same way each time. An error names an option, and neither an error nor `Debug` shows a secret.

use townsquare::{Config, Error, ErrorKind, blocking::Client, config::OPTIONS};

use super::{Target, fixture};

/// A text that occurs only where a secret belongs.
const SECRET: &str = "h7KqsEcReT9x";

/// A value of `endpoint_origins` that is always refused, after the other options. So no client opens.
const NO_ORIGIN: &str = "no origin";

/// See the module.
pub struct ConfigUrl;

impl Target for ConfigUrl {
    const NAME: &'static str = "config_url";

    fn new() -> ConfigUrl {
        ConfigUrl
    }

    fn check(&mut self, data: &[u8]) {
        let Some((&kind, rest)) = data.split_first() else { return };
        let url = with_secret(kind, &fixture::text(rest));
        let (first, second) = (Config::from_url(&url), Config::from_url(&url));
        match (first, second) {
            (Ok(first), Ok(second)) => {
                assert_eq!(first, second);
                assert!(!format!("{first:?}").contains(SECRET), "Debug shows a secret: {first:?}");
                // Reads the environment, which takes most of the time.
                if fixture::is_one_of(32, data) {
                    let error = Client::open(first.endpoint_origins(NO_ORIGIN)).expect_err("the origin is refused");
                    check_error(&error);
                    assert!(names_an_option(error.message()), "{error}");
                }
            }
            (Err(first), Err(second)) => {
                assert_eq!(first.to_string(), second.to_string());
                check_error(&first);
                let message = first.message();
                let is_of_url = message.starts_with("Bad configuration URL: ");
                assert!(is_of_url || names_an_option(message) || message.contains("nknown option"), "{first}");
            }
            (first, second) => panic!("one reading succeeds, the other fails: {first:?} {second:?}"),
        }
    }
}

/// The URL, with a secret where `kind` says.
fn with_secret(kind: u8, text: &str) -> String {
    let joint = if text.contains('?') { '&' } else { '?' };
    match kind % 8 {
        0 => format!("postgres://ann:{SECRET}@{text}"),
        1 => format!("{text}{joint}catalog_api_key={SECRET}"),
        2 => format!("{text}{joint}url_signing_key={SECRET}"),
        3 => format!("{text}{joint}storage_url=s3://key:{SECRET}@bucket"),
        4 => format!("{text}{joint}database_url=postgres://ann:{SECRET}@host/town"),
        5 => format!("{text}{joint}catalog_url=https://ann:{SECRET}@host/"),
        _ => text.to_owned(),
    }
}

fn check_error(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(!error.message().is_empty());
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains(SECRET), "an error shows a secret: {text}");
    }
}

fn names_an_option(message: &str) -> bool {
    OPTIONS.iter().any(|(name, _)| message.contains(name))
}
