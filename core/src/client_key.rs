//! The client of a request, for limits: the peer's address or the device, as the host names it.
//!
//! Invariant: a key is a hash. So every key takes the same memory, and the stored key names no address.

// The part of `std::net` without I/O.
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::{collections::HashMap, fmt, hash::Hash, sync::Arc, time::Duration};

use parking_lot::Mutex;

use crate::error::{Error, ErrorKind, Result};

/// How long a client that has reached a limit of [`Slots`] should wait.
const RETRY: Duration = Duration::from_secs(1);

/// The key of a client.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey([u8; 32]);

impl ClientKey {
    /// The key of a text that the host chose. White space around it and the port of an address do not count: a client has
    /// another port with each connection. One subscriber has many IPv6 addresses, so addresses with the same first 64 bits are
    /// one client.
    pub(crate) fn new(text: &str) -> ClientKey {
        let text = text.trim();
        let client = match address(text).map(|address| address.to_canonical()) {
            Some(IpAddr::V6(address)) => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).to_string()
            }
            Some(IpAddr::V4(address)) => address.to_string(),
            None => text.to_owned(),
        };
        ClientKey(*blake3::hash(client.as_bytes()).as_bytes())
    }

    /// The key as text, to be hashed.
    pub(crate) fn hex(self) -> String {
        hex::encode(self.0)
    }
}

/// The address that a text is, without its port and its brackets.
fn address(text: &str) -> Option<IpAddr> {
    let in_brackets = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let text = in_brackets.unwrap_or(text);
    let socket = || text.parse::<SocketAddr>().ok().map(|socket| socket.ip());
    text.parse::<IpAddr>().ok().or_else(socket)
}

crate::model::opaque!(ClientKey);

/// Counts the slots that each owner of a key has at the same time, and refuses more than a limit. Clones share the counts.
#[derive(Clone)]
pub(crate) struct Slots<K = ClientKey> {
    /// The counted things and their owner, for the error: `uploads of one client`.
    what: &'static str,
    limit: usize,
    /// How many slots each owner has. An owner without a slot has no entry.
    used: Arc<Mutex<HashMap<K, usize>>>,
}

/// A slot of an owner. Dropping it makes room for another one.
pub(crate) struct Slot<K: Eq + Hash = ClientKey> {
    used: Arc<Mutex<HashMap<K, usize>>>,
    owner: K,
    is_first: bool,
}

impl<K: Clone + Eq + Hash> Slots<K> {
    pub(crate) fn new(what: &'static str, limit: usize) -> Slots<K> {
        Slots { what, limit, used: Arc::default() }
    }

    /// Takes a slot for an owner. A request without an owner gets no slot and has no limit.
    ///
    /// # Errors
    /// `RateLimited` if the owner has reached the limit.
    pub(crate) fn take(&self, owner: Option<K>) -> Result<Option<Slot<K>>> {
        let Some(owner) = owner else { return Ok(None) };
        let mut used = self.used.lock();
        let count = used.entry(owner.clone()).or_default();
        if *count >= self.limit {
            let message = format!("Too many {}; try again in 1 s", self.what);
            return Err(Error::new(ErrorKind::RateLimited, message).retry_in(RETRY));
        }
        *count += 1;
        Ok(Some(Slot { used: Arc::clone(&self.used), owner, is_first: *count == 1 }))
    }
}

impl<K: Eq + Hash> Slot<K> {
    /// Whether the owner had no other slot when it took this one.
    pub(crate) fn is_first(&self) -> bool {
        self.is_first
    }
}

impl<K: Eq + Hash> Drop for Slot<K> {
    fn drop(&mut self) {
        let mut used = self.used.lock();
        if let Some(count) = used.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                used.remove(&self.owner);
            }
        }
    }
}

impl<K: Eq + Hash> fmt::Debug for Slot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slot")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_subscriber_are_one_client() {
        let same = |one: &str, other: &str| ClientKey::new(one) == ClientKey::new(other);
        assert!(same("2001:db8:1:2::1", "2001:0DB8:1:2:ffff::9") && same("::ffff:192.0.2.1", "192.0.2.1"));
        assert!(!same("2001:db8:1:2::1", "2001:db8:1:3::1") && !same("192.0.2.1", "192.0.2.2"));
        assert!(!same("phone", "Phone") && same("phone", "phone"));
    }

    #[test]
    fn an_address_with_a_port_or_white_space_is_the_same_client() {
        let same = |one: &str, other: &str| ClientKey::new(one) == ClientKey::new(other);
        for text in ["10.0.0.1:80", "10.0.0.1:65535", " 10.0.0.1\n", "\t10.0.0.1:80 ", "[::ffff:10.0.0.1]:80"] {
            assert!(same(text, "10.0.0.1"), "{text:?}");
        }
        for text in ["[2001:db8:1:2::9]:80", "[2001:db8:1:2::1]", " 2001:db8:1:2:: "] {
            assert!(same(text, "2001:db8:1:2::1"), "{text:?}");
        }
        assert!(same(" phone ", "phone") && !same("my phone", "myphone"), "white space inside of a name counts");
        // No ports: other texts, and an IPv6 address without brackets, whose last group would be the port.
        for (one, other) in [
            ("10.0.0.1:x", "10.0.0.1"),
            ("10.0.0.1:65536", "10.0.0.1"),
            ("phone:1", "phone"),
            ("[10.0.0.1", "10.0.0.1"),
        ] {
            assert!(!same(one, other), "{one:?}");
        }
        assert!(!same("2001:db8:1:2:3:4:5:80", "2001:db8:1:3::1"));
    }

    #[test]
    fn each_client_has_its_own_slots_and_leaves_nothing_behind() {
        let slots = Slots::new("streams of one client", 2);
        let (one, other) = (Some(ClientKey::new("one")), Some(ClientKey::new("other")));
        let taken: Vec<_> = (0..2).map(|_| slots.take(one).expect("room")).collect();
        let refused = slots.take(one).expect_err("the limit");
        assert_eq!((refused.kind(), refused.retry_after()), (ErrorKind::RateLimited, Some(RETRY)));
        assert_eq!(refused.message(), "Too many streams of one client; try again in 1 s");
        assert!(
            slots.take(other).is_ok_and(|slot| slot.is_some()) && slots.take(None).is_ok_and(|slot| slot.is_none())
        );
        assert_eq!(taken.iter().flatten().map(Slot::is_first).collect::<Vec<_>>(), [true, false]);
        drop(taken);
        assert!(slots.used.lock().is_empty());
    }
}
