//! The URL of an object store on the command line, or in a variable.
//!
//! Invariant: no error prints a text that may have a secret.

use std::{env, ffi::OsStr};

use crate::{
    context::Context,
    failure::Failure,
    redact::{has_secret, known_scheme, redacted},
};

/// The schemes of object stores.
const SCHEMES: [&str; 7] = ["s3", "s3a", "gs", "az", "azure", "abfs", "abfss"];

const FORMS: &str =
    "A URL begins with s3://, gs:// or az://. For a file of this machine, give its path, such as ./copy.db.";

/// The URL of an object or of a folder of objects.
pub(in crate::commands) struct StoreUrl {
    /// It may have a secret.
    pub(super) url: String,
    /// The URL without its options and its password.
    pub(in crate::commands) shown: String,
}

impl StoreUrl {
    /// Reads an argument: a URL, or `env:VARIABLE`. `None` if it is a path.
    ///
    /// # Errors
    /// Usage for a URL with a secret, for a URL of something else, and for a variable without a URL of a store.
    pub(in crate::commands) fn read(argument: &OsStr) -> Result<Option<StoreUrl>, Failure> {
        let Some(text) = argument.to_str() else { return Ok(None) };
        if let Some(variable) = text.strip_prefix("env:") {
            let value = env::var(variable).ok().filter(|value| is_of_store(value));
            let no_url = || Failure::usage(format!("The variable {variable} has no URL of an object store"), FORMS);
            return value.map(|value| Some(StoreUrl::new(&value))).ok_or_else(no_url);
        }
        if !is_of_store(text) {
            return match text.contains("://") {
                true => Err(Failure::usage("The argument is neither a URL of an object store nor a path", FORMS)),
                false => Ok(None),
            };
        }
        if has_secret(text) {
            return Err(Failure::usage(
                "A URL with a secret is no argument: other users can read a command line",
                "Write env:VARIABLE and set the variable to the URL, or set AWS_SECRET_ACCESS_KEY and the like.",
            ));
        }
        Ok(Some(StoreUrl::new(text)))
    }

    fn new(url: &str) -> StoreUrl {
        StoreUrl { url: url.to_owned(), shown: redacted(base(url)) }
    }

    /// # Errors
    /// Usage if the objects of the database are in the same folder of the store: `repair` would remove the backup.
    pub(super) fn require_outside(&self, context: &Context) -> Result<(), Failure> {
        let Some(objects) = objects_url(context)? else { return Ok(()) };
        let (ours, objects) = (place(&self.url), place(&objects));
        match ours == objects || ours.starts_with(&format!("{objects}/")) {
            true => Err(Failure::usage(
                format!("{} lies in the object store of the database, whose repair may delete it", self.shown),
                "Give another bucket, or a folder beside that of the option storage_url.",
            )),
            false => Ok(()),
        }
    }
}

/// The option `storage_url`, if it names an object store.
pub(super) fn objects_url(context: &Context) -> Result<Option<String>, Failure> {
    let url = context.settings()?.get("storage_url").and_then(|setting| setting.value.to_str().map(ToOwned::to_owned));
    Ok(url.filter(|url| is_of_store(url)))
}

fn is_of_store(text: &str) -> bool {
    known_scheme(text).is_some_and(|scheme| SCHEMES.contains(&scheme))
}

/// The URL without its options.
fn base(url: &str) -> &str {
    url.split_once('?').map_or(url, |(base, _)| base)
}

/// The bucket and the path.
fn place(url: &str) -> &str {
    base(url).split_once("://").map_or(url, |(_, place)| place).trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<StoreUrl>, Failure> {
        StoreUrl::read(OsStr::new(text))
    }

    #[test]
    fn a_path_is_no_url() {
        for path in ["copy.db", "/backups/copy.db", "-", "a:b", "./env:x", "s3", "a//b"] {
            assert!(read(path).expect(path).is_none(), "{path}");
        }
    }

    #[test]
    fn a_url_is_shown_without_its_options() {
        for url in ["s3://town/a/b.tar?region=eu&endpoint=http://127.0.0.1:1", "s3://town/a/b.tar"] {
            let url = read(url).expect("a URL").expect("of a store");
            assert_eq!(url.shown, "s3://town/a/b.tar");
        }
    }

    #[test]
    fn secrets_and_other_urls_are_refused() {
        for (url, part) in [
            ("s3://town/b.tar?secret_access_key=MARKED", "secret"),
            ("s3://town/b.tar?access_key_id=MARKED", "secret"),
            ("s3://ann:MARKED@town/b.tar", "secret"),
            ("postgres://ann:MARKED@db/town", "neither"),
            ("S3://ann:MARKED@town/b.tar", "neither"),
            ("env:TOWNSQUARE_NO_SUCH_VARIABLE", "has no URL"),
        ] {
            let failure = read(url).err().expect("refused");
            let sentence = failure.sentence.expect("a sentence");
            assert!(
                sentence.contains(part) && !format!("{sentence}{}", failure.advice).contains("MARKED"),
                "{sentence}"
            );
        }
    }
}
