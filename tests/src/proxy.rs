//! A TCP proxy between a client and a server on the loopback, which cuts connections.
//!
//! Invariant: a cut loses whole messages: the request, or the answer to it.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU16, Ordering},
    },
    thread,
};

use parking_lot::Mutex;

/// A proxy for one port.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

/// When [`Proxy::cut`] cuts a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The server does not get the request.
    BeforeRequest,
    /// The server gets the request; the client's connection ends at once.
    AfterRequest,
    /// The server has answered; the client does not get the answer.
    AfterAnswer,
}

#[derive(Default)]
struct Shared {
    /// The port of the server.
    target: AtomicU16,
    is_down: AtomicBool,
    is_stalled: AtomicBool,
    /// The bytes of the requests to cut at, and how many of these requests.
    next_cut: Mutex<Option<(Vec<u8>, Cut, u32)>>,
    ends: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// Starts a proxy for a port of the loopback.
    ///
    /// # Panics
    /// When no port is free.
    pub fn to(port: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let own = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared { target: port.into(), ..Shared::default() });
        let proxy = Proxy { port: own, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if shared.is_down.load(Ordering::Acquire) {
                    return;
                }
                let Ok(far) = TcpStream::connect(("127.0.0.1", shared.target.load(Ordering::Acquire))) else {
                    continue;
                };
                forward(&shared, &near, &far);
                shared.ends.lock().extend([near, far]);
            }
        });
        proxy
    }

    /// The port that clients connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the connection of the next request that contains `bytes` (any request, if `bytes` is empty). Other connections, and new ones, go on.
    pub fn cut(&self, bytes: &str, cut: Cut) {
        self.cut_each(bytes, cut, 1);
    }

    /// Does what [`Proxy::cut`] does, for this many requests.
    pub fn cut_each(&self, bytes: &str, cut: Cut, times: u32) {
        *self.shared.next_cut.lock() = Some((bytes.into(), cut, times));
    }

    /// From now on requests and answers go nowhere, as if the server were gone without a word; or, if false, they go on.
    pub fn stall(&self, is_stalled: bool) {
        self.shared.is_stalled.store(is_stalled, Ordering::Release);
    }

    /// Cuts every connection and leads later ones to another port.
    pub fn lead_to(&self, port: u16) {
        self.shared.target.store(port, Ordering::Release);
        for end in &*self.shared.ends.lock() {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    /// Returns how many connections it has accepted.
    pub fn connections(&self) -> usize {
        self.shared.ends.lock().len() / 2
    }

    /// Cuts every connection and accepts no further one.
    pub fn disconnect(&self) {
        self.shared.is_down.store(true, Ordering::Release);
        // Wakes the listener, which then ends.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        for end in self.shared.ends.lock().drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

/// Starts the two threads of a connection.
fn forward(shared: &Arc<Shared>, near: &TcpStream, far: &TcpStream) {
    let handle = |stream: &TcpStream| stream.try_clone().expect("a handle");
    let loses_answer = Arc::new(AtomicBool::new(false));
    let (mut from, mut to, client) = (handle(near), handle(far), handle(near));
    let (answers, shared, loses) = (Arc::clone(shared), Arc::clone(shared), Arc::clone(&loses_answer));
    thread::spawn(move || {
        let mut bytes = [0; 65_536];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if shared.is_stalled.load(Ordering::Acquire) {
                continue;
            }
            let cut = shared.cut_of(&bytes[..read]);
            loses.store(cut.is_some(), Ordering::Release);
            if cut == Some(Cut::BeforeRequest) || to.write_all(&bytes[..read]).is_err() {
                let _ = to.shutdown(Shutdown::Both);
                break;
            }
            if cut == Some(Cut::AfterRequest) {
                break;
            }
            if cut == Some(Cut::AfterAnswer) {
                // The other thread ends the connection.
                return;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
    });
    let (mut from, mut to) = (handle(far), client);
    thread::spawn(move || {
        let mut bytes = [0; 65_536];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if answers.is_stalled.load(Ordering::Acquire) {
                continue;
            }
            if loses_answer.load(Ordering::Acquire) || to.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        // The server keeps its end until it has written its answer.
        while let Ok(1..) = from.read(&mut bytes) {}
    });
}

impl Shared {
    /// Takes the cut of a request.
    fn cut_of(&self, request: &[u8]) -> Option<Cut> {
        let mut next = self.next_cut.lock();
        let (bytes, cut, times) = next.as_mut()?;
        let contains = bytes.is_empty() || request.windows(bytes.len()).any(|window| window == bytes.as_slice());
        let cut = contains.then_some(*cut)?;
        *times -= 1;
        if *times == 0 {
            *next = None;
        }
        Some(cut)
    }
}
