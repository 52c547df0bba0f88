//! What several targets need: clients in memory with a fixed time, users, and the waiting for a body.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use townsquare::{Config, Timestamp, Uuid, blocking::Client, config::ManualClock};

/// The seed of an identity key.
pub(super) const KEY: &str = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";

/// The time of every client.
pub(super) fn now() -> Timestamp {
    Timestamp::from_second(1_790_000_000).expect("a time")
}

/// The options of a client in memory whose time stands still.
pub(super) fn in_memory() -> Config {
    Config::new().data_dir(":memory:").catalog_api_key("").clock(ManualClock::at(now()).clock())
}

/// Opens a client.
pub(super) fn open(config: Config) -> Client {
    Client::open(config).expect("a client in memory opens")
}

/// Creates an account. Returns the user's id and a handle of the user.
pub(super) fn user(client: &Client, name: &str) -> (Uuid, Client) {
    let (address, password) = (format!("{name}@town.example"), "correct horse");
    let id = client.auth().sign_up(&address, password).expect("a new account").id;
    let session = client.auth().create_session(&address, password).expect("the password is right");
    (id, client.as_user(&session.access_token).expect("a new session"))
}

/// The input as text. Bytes that are not UTF-8 become replacement characters.
pub(super) fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}

/// Whether an input is one of the few that a slow check is made for: one of `many`. Every byte of the input decides, so that libFuzzer
/// does not collect these inputs alone.
pub(super) fn is_one_of(many: u32, data: &[u8]) -> bool {
    data.iter().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte))) % many == 0
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future.
pub(super) fn wait<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
