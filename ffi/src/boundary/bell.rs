//! A file descriptor that is readable after somebody has rung, for the loop of a host.
//!
//! Invariant: after [`Bell::ring`] the descriptor is readable until [`Bell::clear`]. A ring during `clear` may leave no trace: what
//! was rung for is to be looked up after `clear`.

use std::{
    io::{self, Read as _, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Wake,
};

#[cfg(unix)]
use std::os::{fd::AsRawFd as _, unix::net::UnixStream};

/// Two connected sockets: `ring` writes one byte, which the host sees.
#[cfg(unix)]
pub(crate) struct Bell {
    read: UnixStream,
    write: UnixStream,
    is_rung: AtomicBool,
}

#[cfg(unix)]
impl Bell {
    /// # Errors
    /// Of the system: too many open files.
    pub(crate) fn new() -> io::Result<Bell> {
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        write.set_nonblocking(true)?;
        Ok(Bell { read, write, is_rung: AtomicBool::new(false) })
    }

    pub(crate) fn fd(&self) -> std::ffi::c_int {
        self.read.as_raw_fd()
    }

    /// Makes the descriptor readable.
    pub(crate) fn ring(&self) {
        if !self.is_rung.swap(true, Ordering::SeqCst) {
            // It does not fail: the socket has room for many bytes, and both ends are open.
            let _ = (&self.write).write(&[1]);
        }
    }

    /// Makes the descriptor not readable.
    pub(crate) fn clear(&self) {
        let mut bytes = [0; 16];
        while (&self.read).read(&mut bytes).is_ok_and(|length| length == bytes.len()) {}
        self.is_rung.store(false, Ordering::SeqCst);
    }
}

/// There is none on this system.
#[cfg(not(unix))]
pub(crate) struct Bell(std::convert::Infallible);

#[cfg(not(unix))]
impl Bell {
    pub(crate) fn new() -> io::Result<Bell> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn fd(&self) -> std::ffi::c_int {
        match self.0 {}
    }

    pub(crate) fn ring(&self) {}

    pub(crate) fn clear(&self) {}
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Whether the descriptor is readable, without reading from it for good.
    fn is_readable(bell: &Bell) -> bool {
        let was_rung = bell.is_rung.load(Ordering::SeqCst);
        let found = (&bell.read).read(&mut [0; 16]).is_ok();
        if found {
            bell.is_rung.store(false, Ordering::SeqCst);
            bell.ring();
            bell.is_rung.store(was_rung, Ordering::SeqCst);
        }
        found
    }

    #[test]
    fn a_ring_is_readable_until_it_is_cleared() {
        let bell = Bell::new().expect("sockets");
        assert!(!is_readable(&bell));
        for _ in 0..100_000 {
            bell.ring();
        }
        assert!(is_readable(&bell));
        bell.clear();
        assert!(!is_readable(&bell));
        bell.ring();
        assert!(is_readable(&bell));
    }
}
