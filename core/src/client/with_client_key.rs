//! Handles with limits for one client of a server.

use std::sync::Arc;

use super::Client;
use crate::client_key::ClientKey;
#[cfg(doc)]
use crate::{auth::Auth, realtime::Realtime, storage::Storage};

impl Client {
    /// Returns this handle with limits for one client of a server: the address of the peer, or a device that proves its name.
    ///
    /// Sign-ins, password checks and the requests that [`handle_file`](Storage::handle_file) and
    /// [`handle_events`](Realtime::handle_events) answer count for the client first: see [`Auth::sign_in`]. One client has at
    /// most 64 streams of events and 16 uploads at the same time; beyond them the handlers answer 429. IPv6 addresses with the
    /// same first 64 bits are one client. Handles without a client key have the limits of the whole client only.
    ///
    /// The handle has the caller of `self`, as a clone has. Handles that are made from it have the same client key.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client, peer: std::net::IpAddr) -> townsquare::Result<()> {
    /// let server = client.as_service().with_client_key(&peer.to_string());
    /// let session = server.auth().sign_in("ann@town.example", "correct horse").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_client_key(&self, client_key: &str) -> Client {
        let auth = self.0.auth.for_client(Some(ClientKey::new(client_key)));
        Client::with_auth(Arc::clone(&self.0.core), auth, self.0.is_derived)
    }
}
