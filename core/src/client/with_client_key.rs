//! Handles with limits for one client of a server.

use std::sync::Arc;

use super::Client;
use crate::client_key::ClientKey;

impl Client {
    /// Returns this handle with limits for one client of a server: the address of the peer, or a device that proves its name.
    ///
    /// Sign-ins, password checks and the requests that [`handle_file`](crate::storage::Storage::handle_file) and
    /// [`handle_events`](crate::realtime::Realtime::handle_events) answer count for the client first: see
    /// [`sign_in`](crate::auth::Auth::sign_in). One client has at most 64 streams of events and 16 uploads at the same time; beyond
    /// them the handlers answer 429. IPv6 addresses with the same first 64 bits are one client. Handles without a client key have
    /// the limits of the whole client only.
    ///
    /// White space around the key, and the port of an address, do not count: `10.0.0.1:80` and `10.0.0.1` are one client. Any
    /// other text is a client of its own, as it is written.
    ///
    /// Behind a proxy every request has the proxy's address: pass the address that a trusted proxy reports, not a header that the
    /// peer can write.
    ///
    /// The handle has the caller of `self`, as a clone has. Handles that are made from it have the same client key.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # let peer = std::net::IpAddr::from([203, 0, 113, 7]);
    /// client.auth().sign_up("ann@town.example", "correct horse")?;
    /// let request = client.with_client_key(&peer.to_string());
    /// let session = request.auth().create_session("ann@town.example", "correct horse")?;
    /// assert_eq!(session.user.email, "ann@town.example");
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    #[must_use]
    pub fn with_client_key(&self, client_key: &str) -> Client {
        let auth = self.0.auth.for_client(Some(ClientKey::new(client_key)));
        Client::with_auth(Arc::clone(&self.0.core), auth, self.0.is_derived)
    }
}
