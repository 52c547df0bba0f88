//! Signed files (UPSTREAM 3) against the values of another program in `shared/data`.

use serde_json::Value;
use townsquare::storage::{SignOptions, decrypt_file, encrypt_file, sign_file, verify_file};
use townsquare_tests::{paths::shared_data, skip::skip};

#[test]
fn signed_files_of_another_program_verify_and_are_made_alike() {
    let Some(path) = shared_data("signed-file-vectors.json") else {
        return skip("signed-file-vectors.json is not beside the workspace");
    };
    let vectors: Value = serde_json::from_slice(&std::fs::read(path).expect("the file")).expect("JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let private_key = text(&vectors["private_key"]);
    let cases = vectors["cases"].as_array().expect("a list");
    assert!(cases.len() >= 4);
    for case in cases {
        let mut signed = case["unsigned"].clone();
        assert!(!verify_file(&signed), "without a signature");
        signed["signature"] = case["signature"].clone();
        assert_eq!(Value::Bool(verify_file(&signed)), case["verifies"], "{signed}");
        let mut altered = signed.clone();
        altered["timestamp"] = "2024-01-15T10:30:00.001Z".into();
        assert!(!verify_file(&altered));

        let Some(file_data) = signed["fileData"].as_str() else { continue };
        let timestamp = text(&signed["timestamp"]).parse().expect("a time");
        let mut options = SignOptions::new().timestamp(timestamp).file_type(text(&signed["fileType"]));
        if let Some(name) = signed["fileName"].as_str() {
            options = options.file_name(name);
        }
        if signed["isEncrypted"] == false {
            assert_eq!(sign_file(file_data, &private_key, options).expect("a key"), signed);
            continue;
        }
        assert_eq!(file_data, text(&vectors["encryption"]["file_data_hex"]));
        let plaintext = text(&vectors["encryption"]["plaintext"]);
        assert_eq!(decrypt_file(&signed, &private_key).expect("decrypted"), plaintext.as_bytes());
        let again = encrypt_file(plaintext.as_bytes(), &private_key, options).expect("a key");
        assert_eq!(decrypt_file(&again, &private_key).expect("decrypted"), plaintext.as_bytes());
        assert_eq!(again["fileData"].as_str().map(str::len), Some(file_data.len()));
    }
}
