//! The option `buckets`: `NAME=public` or `NAME=private`, separated by commas.

use std::collections::BTreeMap;

use crate::{
    error::{Error, Result},
    storage_path::is_bucket_name,
};

/// The access of a bucket that the option `buckets` declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeclaredAccess {
    Public,
    Private,
}

/// Reads the option. White space around a name and an access has no meaning.
///
/// # Errors
/// `Config`, naming the option, for a text of another form, and for a name that no declared bucket can have.
pub(crate) fn declared_buckets(option: &str) -> Result<BTreeMap<String, DeclaredAccess>> {
    let mut buckets = BTreeMap::new();
    for entry in option.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let bad = |why: &str| Error::config(format!("Option buckets: {entry:?} {why}"));
        let (name, access) = entry.split_once('=').ok_or_else(|| bad("is not NAME=public or NAME=private"))?;
        let access = match access.trim() {
            "public" => DeclaredAccess::Public,
            "private" => DeclaredAccess::Private,
            _ => return Err(bad("is not NAME=public or NAME=private")),
        };
        let name = name.trim();
        if !is_bucket_name(name) {
            return Err(bad("has no name of a bucket: 1 to 63 of a-z, 0-9, - and _, and none of the built-in ones"));
        }
        if buckets.insert(name.to_owned(), access).is_some() {
            return Err(bad("names a bucket twice"));
        }
    }
    Ok(buckets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_accesses_are_read() {
        let declared = declared_buckets(" media=public, vault = private ,").expect("valid");
        let expected = [("media", DeclaredAccess::Public), ("vault", DeclaredAccess::Private)];
        assert_eq!(declared, BTreeMap::from(expected.map(|(name, access)| (name.to_owned(), access))));
        assert_eq!(declared_buckets("").expect("valid"), BTreeMap::new());
    }

    #[test]
    fn a_name_that_no_bucket_can_have_is_refused_by_the_rule() {
        let long = "x".repeat(64);
        for name in ["a/b", "", "..", "A", "a b", "é", "assets", "spaces", "private", &long] {
            let error = declared_buckets(&format!("ok=public,{name}=public")).expect_err(name);
            assert_eq!(error.kind(), crate::ErrorKind::Config);
            assert!(error.message().contains("1 to 63 of a-z, 0-9, - and _"), "{name}: {error}");
        }
        for (option, part) in [("a", "NAME=public"), ("a=open", "NAME=public"), ("a=public,a=private", "twice")] {
            let error = declared_buckets(option).expect_err(option);
            assert!(error.message().starts_with("Option buckets: ") && error.message().contains(part), "{error}");
        }
    }
}
