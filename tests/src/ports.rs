//! Ports of the loopback: for a server that binds its port later, and ports that refuse connections.

use std::{iter::repeat_with, net::TcpListener, ops::Range};

use tokio::net::TcpSocket;

/// How often a server is started that ends at once, each time on another port.
pub const STARTS: usize = 5;

/// Below `ip_local_port_range` of Linux, from which the system takes the port for a test that binds port 0.
const RANGE: Range<u16> = 10_001..32_768;

/// Returns a port that is free now, for a server that binds it later.
///
/// # Panics
/// When no port is free.
pub fn free_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    repeat_with(|| fastrand::u16(RANGE)).take(1_000).find(is_free).expect("a free port")
}

/// A port that refuses connections until this value is dropped: of a socket that is bound and does not listen.
pub struct RefusingPort(TcpSocket);

impl RefusingPort {
    /// Takes a port.
    ///
    /// # Panics
    /// When no port is free.
    pub fn bind() -> RefusingPort {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        RefusingPort(socket)
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.0.local_addr().expect("a bound socket has an address").port()
    }
}
