//! Tests of signed files against values of another program.

use serde_json::json;

use super::*;
use crate::error::ErrorKind;

// Made with the JavaScript of another program that signs such files.
const KEY: &str = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
const OTHER_KEY: &str = "2102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
const ENCRYPTED: &str =
    "000102030405060708090a0b0c0d0e0f10111213141516179cfddff77a4bdc3ac3e257e187dcacc90e0a429247ac97cec60032898ee53f";

fn options() -> SignOptions {
    SignOptions::new().timestamp("2024-01-15T10:30:00Z".parse().expect("a time"))
}

fn plain() -> Json {
    sign_file(r#"{"a":1}"#, KEY, options()).expect("a key")
}

fn encrypted() -> Json {
    json!({
        "publicKey": "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664",
        "fileData": ENCRYPTED, "fileType": "json", "isEncrypted": true, "timestamp": "2024-01-15T10:30:00.000Z",
        "signature": "ec85078c9c916d1b8b22e3c20211d3e8ab78ba04974ae9e7426602b60186c5db\
                      df7c6e17a0e9397c4d0dd58e9d204a78c726e8057f225ae45410de89f6b1f504",
    })
}

/// Signs an encrypted file with these data, so that only the data are wrong.
fn encrypted_with(data: &str) -> Json {
    sign(data.to_owned(), true, &PrivateKey::from_hex(KEY).expect("a key"), options())
}

#[test]
fn a_signed_file_equals_that_of_another_program() {
    let expected = json!({
        "publicKey": "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664",
        "fileData": "{\"a\":1}", "fileType": "json", "isEncrypted": false, "timestamp": "2024-01-15T10:30:00.000Z",
        "signature": "7872a955678d07afa6754d61262dbd37c53bd2488d70d69bc8158166ca2533ae\
                      894816d89276d872ee05bd11c7cbbcff204cc5cea5a08318652c04eac9e5ad04",
    });
    assert_eq!(plain(), expected);
    let named = options().file_name("Caf\u{e9} \u{1f3e0}");
    let named =
        sign_file("{\"emoji\":\"\u{1f600}\",\"q\":\"\\\"x\\\"\",\"nl\":\"a\\nb\",\"u\":\"\u{e9}\"}", KEY, named);
    let signature = "34368d30934e788774fe5aeaf03b24f2b9e665fd8e22a1680e694a7313563767\
                     c707054921070777e2511565eabfff6b3ed59741e475aba554563c7aa6b10d09";
    assert_eq!(named.expect("a key")["signature"], signature);
}

#[test]
fn any_object_with_numbers_lists_and_nested_members_verifies() {
    let tab_order = r#"{
        "spaceId": "00000000-0000-4000-8000-000000000001", "tabOrder": ["Home", "Links"],
        "timestamp": "2024-01-15T10:30:00.000Z",
        "publicKey": "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664",
        "n": [1, null, {"b": 2, "a": 1.5e+21}],
        "signature": "SIGNATURE"
    }"#;
    let signature = "a3e48513405ee390fd7cd113941d1d013ab8418e3e13e81f608ae6321f734552\
                     95f2d34dc3a9bf9b281c230a94b6237f450ae67545628ba2e0d11d0f02a32201";
    let content = tab_order.replace("SIGNATURE", signature);
    assert!(verify_content(content.as_bytes()));
    assert!(!verify_content(content.replace("Links", "Lynx").as_bytes()));
    assert!(!verify_content(tab_order.as_bytes()));
}

#[test]
fn altered_members_do_not_verify() {
    assert!(verify_file(&plain()));
    for (name, value) in [
        ("fileData", json!("{\"a\":2}")),
        ("fileData", json!({"a": 1})),
        ("fileType", json!("text")),
        ("isEncrypted", json!(true)),
        ("timestamp", json!("2024-01-15T10:30:00.001Z")),
        ("fileName", json!("Home")),
        ("publicKey", encrypt_file(b"", OTHER_KEY, options()).expect("a key")["publicKey"].clone()),
        ("signature", encrypted()["signature"].clone()),
    ] {
        let mut altered = plain();
        altered[name] = value;
        assert!(!verify_file(&altered), "{name}");
    }
    for name in ["fileData", "fileType", "isEncrypted", "timestamp", "publicKey", "signature"] {
        let mut altered = plain();
        altered.as_object_mut().expect("an object").remove(name);
        assert!(!verify_file(&altered), "{name}");
    }
}

#[test]
fn values_of_wrong_types_and_placeholders_do_not_verify() {
    for value in [json!(null), json!(1), json!("{}"), json!([]), json!([plain()]), json!({})] {
        assert!(!verify_file(&value), "{value}");
    }
    for name in ["publicKey", "signature"] {
        let upper = plain()[name].as_str().expect("hex").to_uppercase();
        for value in [json!(null), json!(7), json!(["ab"]), json!(""), json!("zz"), json!(upper)] {
            let mut altered = plain();
            altered[name] = value;
            assert!(!verify_file(&altered), "{name}: {}", altered[name]);
        }
    }
    let mut machine = plain();
    machine["publicKey"] = "nounspace".into();
    machine["signature"] = "not applicable, machine generated file".into();
    assert!(!verify_file(&machine));
    let mut small_order = plain();
    small_order["publicKey"] = format!("01{}", "00".repeat(31)).into();
    small_order["signature"] = format!("01{}", "00".repeat(63)).into();
    assert!(!verify_file(&small_order), "anyone can sign for a key of small order");
    assert!(!verify_content(b"") && !verify_content(b"{") && !verify_content(b"\xff"));
}

#[test]
fn an_encrypted_file_of_another_program_is_decrypted() {
    assert!(verify_file(&encrypted()));
    assert_eq!(decrypt_file(&encrypted(), KEY).expect("decrypted"), b"{\"secret\":true}");
    assert_eq!(decrypt_file(&encrypted(), &KEY.to_uppercase()).expect("decrypted"), b"{\"secret\":true}");
    assert_eq!(encrypted_with(ENCRYPTED), encrypted(), "the same signature");
}

#[test]
fn data_of_every_size_comes_back() {
    for data in [&b""[..], b"x", &[0, 255].repeat(50_000)] {
        let signed = encrypt_file(data, KEY, options().file_name("Home")).expect("a key");
        assert!(verify_file(&signed));
        assert_eq!((&signed["isEncrypted"], &signed["fileName"]), (&json!(true), &json!("Home")));
        assert_eq!(decrypt_file(&signed, KEY).expect("decrypted"), data);
        let again = encrypt_file(data, KEY, options()).expect("a key");
        assert_ne!(signed["fileData"], again["fileData"], "a new nonce");
    }
}

#[test]
fn what_is_altered_or_of_another_key_is_not_decrypted() {
    let error = |signed: &Json, key: &str| {
        let error = decrypt_file(signed, key).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(!error.to_string().contains(key));
        error.message().to_owned()
    };
    assert_eq!(error(&encrypted(), OTHER_KEY), "The signed file is of another key");
    assert_eq!(error(&plain(), KEY), "The signed file is not encrypted");
    let mut altered = encrypted();
    altered["fileData"] = ENCRYPTED.replace("9cfddff7", "9cfddff8").into();
    assert_eq!(error(&altered, KEY), "The signed file does not verify");
    let no_ciphertext = "The data of the signed file is no valid ciphertext";
    for data in [
        "",
        "zz",
        "{\"secret\":true}",
        &ENCRYPTED[..48],
        &ENCRYPTED[..ENCRYPTED.len() - 2],
        &ENCRYPTED[..ENCRYPTED.len() - 1],
        &ENCRYPTED.replacen("00", "01", 1),
    ] {
        assert_eq!(error(&encrypted_with(data), KEY), no_ciphertext, "{data}");
    }
    let mut machine = encrypted();
    machine["publicKey"] = "nounspace".into();
    assert_eq!(error(&machine, KEY), "The signed file does not verify");
    assert_eq!(error(&json!([]), KEY), "The signed file does not verify");
}

#[test]
fn malformed_private_keys_are_refused_and_not_quoted() {
    for key in ["", "ab", &KEY[2..], &"zz".repeat(32), &format!("{KEY}00"), &format!("0x{}", &KEY[2..])] {
        let errors = [
            sign_file("{}", key, options()).expect_err("no key"),
            encrypt_file(b"", key, options()).expect_err("no key"),
            decrypt_file(&encrypted(), key).expect_err("no key"),
        ];
        for error in errors {
            assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidInput, "A private key is 64 hex digits"));
        }
    }
}
