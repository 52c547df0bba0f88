//! Requests for `handle_file`, and users who send them.

use townsquare::{
    Uuid,
    blocking::{Client, wait},
    storage::UploadOptions,
};
use townsquare_tests::test_database::TestDatabase;

/// A response with its whole body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// The header with this lower-case name.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The member `error` of a refusal.
    pub(super) fn error(&self) -> String {
        let body: serde_json::Value = serde_json::from_slice(&self.body).expect("JSON");
        assert_eq!(body["success"], false);
        body["error"].as_str().expect("a text").to_owned()
    }
}

/// Sends a request to `client` and reads the response to its end.
pub(super) fn send(client: &Client, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let response = client.storage().handle_file(method, target, &headers, body.to_vec()).expect("a response");
    let (size, mut content, mut rest) = (response.body.size(), Vec::new(), response.body);
    while let Some(chunk) = wait(rest.next_chunk()).expect("the body is sent") {
        assert!(!chunk.is_empty(), "an empty chunk looks like the end");
        content.extend_from_slice(&chunk);
    }
    assert_eq!(content.len() as u64, size);
    Answer { status: response.status, headers: response.headers, body: content }
}

/// A user with the header that names their session.
pub(super) struct Sender {
    pub(super) id: Uuid,
    pub(super) client: Client,
    authorization: String,
}

impl Sender {
    /// Signs up a user and signs them in.
    pub(super) fn new(db: &TestDatabase, name: &str) -> Sender {
        let (address, password) = (format!("{name}@town.example"), "correct horse");
        let user = db.service.auth().sign_up(&address, password).expect("signed up");
        let session = db.service.auth().sign_in(&address, password).expect("signed in");
        let client = db.client.as_user(&session.access_token).expect("a handle");
        Sender { id: user.id, client, authorization: format!("Bearer {}", session.access_token) }
    }

    /// The header `Authorization`.
    pub(super) fn bearer(&self) -> (&str, &str) {
        ("Authorization", &self.authorization)
    }
}

/// Stores a file as the service; returns its etag.
pub(super) fn store(db: &TestDatabase, bucket: &str, path: &str, content: &[u8]) -> String {
    db.service.storage().upload(bucket, path, content.to_vec(), UploadOptions::new()).expect("stored").etag
}
