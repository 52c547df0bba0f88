//! Tests of the rule of paths and of the paths of SPEC 2.8.

use super::*;
use crate::error::ErrorKind;

const KEY: &str = "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664";

fn refusal(path: &str) -> String {
    let error = FilePath::parse(path).expect_err(path);
    assert_eq!((error.kind(), error.status()), (ErrorKind::InvalidInput, 400), "{path:?}");
    assert_eq!(error.sentence(), "Invalid file or request");
    error.reason().expect("a reason").to_owned()
}

#[test]
fn paths_are_kept_as_they_are() {
    let longest_segment = "a".repeat(255);
    let longest_path = [&*longest_segment, &longest_segment, &longest_segment, &longest_segment, "a"].join("/");
    assert_eq!(longest_path.len(), 1_025);
    let longest_path = &longest_path[1..];
    for path in [
        "a",
        "a/b/c.txt",
        "...",
        "..a/a../.a",
        " a ",
        "a:b*c?d\"e<f>g|h#12",
        "CON",
        "~",
        ".townsquare/staging",
        "caf\u{e9}/\u{1f3e0}",
        &longest_segment,
        longest_path,
    ] {
        assert_eq!(FilePath::parse(path).expect(path).as_str(), path);
    }
}

#[test]
fn empty_segments_and_absolute_paths_are_refused() {
    assert_eq!(refusal(""), "segment 1 of the path is empty");
    assert_eq!(refusal("/a"), "segment 1 of the path is empty");
    assert_eq!(refusal("/etc/passwd"), "segment 1 of the path is empty");
    assert_eq!(refusal("a//b"), "segment 2 of the path is empty");
    assert_eq!(refusal("a/"), "segment 2 of the path is empty");
    assert_eq!(refusal("//host/share"), "segment 1 of the path is empty");
}

#[test]
fn dot_segments_are_refused() {
    assert_eq!(refusal(".."), "segment 1 of the path is `..`");
    assert_eq!(refusal("a/../b"), "segment 2 of the path is `..`");
    assert_eq!(refusal("a/.."), "segment 2 of the path is `..`");
    assert_eq!(refusal("./a"), "segment 1 of the path is `.`");
    assert_eq!(refusal("a/."), "segment 2 of the path is `.`");
}

#[test]
fn a_new_path_has_no_control_of_the_direction_of_text() {
    let controls = ['\u{61C}', '\u{200E}', '\u{200F}'].into_iter();
    for control in controls.chain('\u{202A}'..='\u{202E}').chain('\u{2066}'..='\u{2069}') {
        for path in [format!("photo{control}gpj.exe"), format!("{control}/a"), format!("a/b{control}")] {
            let error = FilePath::parse(&path).expect("an old file may have it").check_new().expect_err(&path);
            assert_eq!((error.kind(), error.status()), (ErrorKind::InvalidInput, 400), "{path:?}");
            let reason = error.reason().map(str::to_owned);
            let expected = format!("the path contains the bidirectional control U+{:04X}", u32::from(control));
            assert_eq!(reason, Some(expected));
            assert!(AssetPath::image(&path).is_err() && SpacePath::tab(Uuid::nil(), &path).is_err(), "{path:?}");
        }
    }
    // Text of both directions needs none of them, and other joining characters are letters' business.
    for path in ["\u{5E9}\u{5DC}\u{5D5}\u{5DD}.txt", "\u{646}\u{627}\u{645}\u{647}\u{200C}\u{647}\u{627}"] {
        FilePath::parse(path).and_then(|path| path.check_new()).expect(path);
    }
}

#[test]
fn a_new_path_has_at_most_32_segments() {
    let path = |segments: usize| vec!["a"; segments].join("/");
    FilePath::parse(&path(32)).and_then(|path| path.check_new()).expect("32 segments");
    let error = FilePath::parse(&path(33)).expect("an old file may have it").check_new().expect_err("33 segments");
    assert_eq!((error.kind(), error.status()), (ErrorKind::InvalidInput, 400));
    let reason = error.reason().map(str::to_owned);
    assert_eq!(reason.as_deref(), Some("the path has 33 segments; the limit of a new file is 32"));
    // The helper adds one segment.
    assert!(AssetPath::image(&path(31)).is_ok() && AssetPath::image(&path(32)).is_err());
}

#[test]
fn control_characters_and_backslashes_are_refused() {
    assert_eq!(refusal("a\0b"), "the path contains the control character U+0000");
    for control in ['\n', '\r', '\t', '\u{1b}', '\u{7f}', '\u{80}', '\u{85}', '\u{9f}'] {
        assert!(refusal(&format!("a{control}b")).starts_with("the path contains the control character U+"));
    }
    for path in ["..\\..\\a", "C:\\a", "a\\b", "\\\\host\\share"] {
        assert_eq!(refusal(path), "the path contains a backslash");
    }
}

#[test]
fn too_long_segments_and_paths_are_refused() {
    assert_eq!(refusal(&"a".repeat(256)), "segment 1 of the path has 256 bytes; the limit is 255");
    assert_eq!(refusal(&"a".repeat(2_000)), "the path has 2000 bytes; the limit is 1024");
    assert_eq!(refusal(&"a/".repeat(512).replacen('a', "aa", 1)), "the path has 1025 bytes; the limit is 1024");
    // The limits count bytes and not characters.
    assert_eq!(refusal(&"\u{e9}".repeat(128)), "segment 1 of the path has 256 bytes; the limit is 255");
}

#[test]
fn a_path_that_is_not_in_nfc_is_refused_and_not_converted() {
    for path in ["cafe\u{301}", "\u{212b}", "a/\u{1100}\u{1161}"] {
        assert_eq!(refusal(path), "the path is not in Unicode's normal form C (NFC)");
    }
    // NFKC would join these with ASCII characters. NFC keeps them apart.
    for path in ["\u{ff0e}\u{ff0e}", "a\u{2024}\u{2024}", "a\u{2215}b", "\u{ff0f}a", "\u{fb01}", "\u{ff3c}"] {
        assert_eq!(FilePath::parse(path).expect(path).as_str(), path);
    }
}

#[test]
fn percent_escapes_have_no_meaning_in_a_path() {
    for path in ["%2e%2e", "a%2fb", "%00", "%2e%2e%2fa", "%252e", "%"] {
        let parsed = FilePath::parse(path).expect(path);
        assert_eq!(parsed.as_str(), path);
        assert_eq!(parsed.folders().count(), 0, "one segment");
    }
}

#[test]
fn case_matters() {
    let parse = |path| FilePath::parse(path).expect(path);
    assert_ne!(parse("Logo.png"), parse("logo.png"));
    assert_ne!(parse("stra\u{df}e"), parse("STRASSE"));
}

#[test]
fn a_path_has_a_first_segment_a_name_and_folders() {
    let path = FilePath::parse("a/b/c.txt").expect("a path");
    assert_eq!((path.first_segment(), path.name()), ("a", "c.txt"));
    assert_eq!(path.folders().collect::<Vec<_>>(), ["a", "a/b"]);
    let single = FilePath::parse("a").expect("a path");
    assert_eq!((single.first_segment(), single.name(), single.folders().count()), ("a", "a", 0));
}

#[test]
fn a_prefix_may_end_anywhere_in_a_path() {
    for prefix in ["", "a", "a/", "a/.", "a/b", "caf\u{e9}"] {
        assert!(FilePath::check_prefix(prefix).is_ok(), "{prefix:?}");
    }
    for prefix in ["a\0", "a\\", "cafe\u{301}", &"a".repeat(1_025)] {
        let error = FilePath::check_prefix(prefix).expect_err("no path starts like this");
        assert_eq!((error.kind(), error.status()), (ErrorKind::InvalidInput, 400));
    }
}

#[test]
fn bucket_names_are_short_lower_case_and_not_built_in() {
    for name in ["a", "my-files_2", "0", &"a".repeat(63)] {
        assert!(is_bucket_name(name), "{name}");
    }
    for name in ["", "A", "a.b", "a/b", "..", "\u{e9}", "a b", "spaces", "private", "assets", &"a".repeat(64)] {
        assert!(!is_bucket_name(name), "{name}");
    }
}

#[test]
fn the_paths_of_spec_2_8() {
    let id = Uuid::from_u128(0xABC);
    let text = "00000000-0000-0000-0000-000000000abc";
    let path = |path: Result<StoragePath>| path.expect("a path").to_string();
    assert_eq!(path(Ok(SpacePath::tab_order(id))), format!("spaces/{text}/tabOrder"));
    assert_eq!(path(SpacePath::tab(id, "Home")), format!("spaces/{text}/tabs/Home"));
    assert_eq!(path(SpacePath::asset(id, "icons/sun.png")), format!("spaces/{text}/assets/icons/sun.png"));
    assert_eq!(path(PrivatePath::homebase(KEY)), format!("private/{KEY}/homebase"));
    assert_eq!(path(PrivatePath::homebase(text)), format!("private/{text}/homebase"));
    assert_eq!(path(PrivatePath::tab(KEY, "Notes")), format!("private/{KEY}/tabs/Notes"));
    assert_eq!(path(AssetPath::image("logo.png")), "assets/images/logo.png");
    assert_eq!(path(AssetPath::video("intro.mp4")), "assets/videos/intro.mp4");
    for made in [SpacePath::tab_order(id), SpacePath::tab(id, "Home").expect("a path")] {
        assert!(FilePath::parse(made.path()).is_ok());
    }
}

#[test]
fn tab_names_are_letters_digits_hyphens_underscores_and_spaces() {
    let tab = |name: &str| SpacePath::tab(Uuid::nil(), name);
    for name in
        ["Home", "my-tab_2", "a b", "Caf\u{e9}", "\u{5e83}\u{5834}", "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}"]
    {
        assert!(tab(name).is_ok(), "{name:?}");
    }
    assert_eq!(tab("Cafe\u{301}").ok(), tab("Caf\u{e9}").ok(), "one name has one path");
    for name in [
        "",
        " ",
        " a",
        "a ",
        ".",
        "..",
        "a/b",
        "a\\b",
        "a.b",
        "a%20b",
        "a\0",
        "a\n",
        "a\u{a0}b",
        "\u{1f3e0}",
        "\u{301}a",
        "a\u{200b}b",
        "a\u{202e}b",
        &"a".repeat(256),
        &"a".repeat(2_000),
    ] {
        assert_eq!(tab(name).expect_err(name).kind(), ErrorKind::InvalidInput, "{name:?}");
        assert!(PrivatePath::tab(KEY, name).is_err(), "{name:?}");
    }
}

#[test]
fn helpers_refuse_names_and_owners_that_leave_their_folder() {
    for name in ["", "..", "../x", "a/../../b", "/a", "a//b", "a\\b", "a\0"] {
        assert!(SpacePath::asset(Uuid::nil(), name).is_err(), "{name:?}");
        assert!(AssetPath::image(name).is_err(), "{name:?}");
        assert!(AssetPath::video(name).is_err(), "{name:?}");
    }
    let upper = KEY.to_uppercase();
    for owner in ["", "..", "a", &KEY[1..], &upper, "nounspace", "00000000000000000000000000000000"] {
        assert_eq!(PrivatePath::homebase(owner).expect_err(owner).kind(), ErrorKind::InvalidInput, "{owner:?}");
        assert!(PrivatePath::tab(owner, "Home").is_err(), "{owner:?}");
    }
}
