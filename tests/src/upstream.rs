//! A fake upstream: a catalog API on the loopback (UPSTREAM 1) that serves its rows, or fails as a test demands.
//!
//! Invariant: it records every request before it replies; dropping it closes its port and ends its threads. Each
//! connection serves one request, so that replies are independent.

mod reply;
mod request;
mod upstream_data;

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    runtime::{Builder, Runtime},
    task::{JoinHandle, JoinSet},
};

pub use self::{
    reply::{Gate, Reply},
    request::Request,
    upstream_data::{CATEGORIES, NETWORKS, PATH, UpstreamData, WINDOWS, in_order_of},
};
use crate::{catalog::Row, wait::wait_until};

/// The API key that the upstream expects in `x-api-key`.
pub const KEY: &str = "MARKED-key-of-the-tests";

/// How many connections wait until they are accepted.
const BACKLOG: u32 = 1_024;

type Behaviour = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// A running upstream.
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
    listener: Mutex<Listener>,
}

enum Listener {
    /// The task that accepts connections.
    Accepting(JoinHandle<()>),
    /// A socket that is bound but does not listen.
    Refusing(Option<TcpSocket>),
}

struct Shared {
    upstream_data: RwLock<Arc<UpstreamData>>,
    behaviour: RwLock<Behaviour>,
    requests: Mutex<Vec<Request>>,
    sent: Arc<AtomicU64>,
}

impl Upstream {
    /// Starts an upstream with these rows, most trending first.
    ///
    /// # Panics
    /// When there is no free port on the loopback.
    pub fn of(rows: impl IntoIterator<Item = Row>) -> Upstream {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("fake-upstream")
            .enable_all()
            .build()
            .expect("a runtime for the fake upstream");
        let shared = Arc::new(Shared {
            upstream_data: RwLock::new(Arc::new(UpstreamData::of(rows))),
            behaviour: RwLock::new(Arc::new(|_: &Request| Reply::Page)),
            requests: Mutex::default(),
            sent: Arc::default(),
        });
        let listener = {
            let _context = runtime.enter();
            let socket = bound_socket(([127, 0, 0, 1], 0).into()).expect("a port on the loopback");
            socket.listen(BACKLOG).expect("a bound socket listens")
        };
        let address = listener.local_addr().expect("a bound socket has an address");
        let listener = Listener::Accepting(runtime.spawn(accept(listener, Arc::clone(&shared))));
        Upstream { address, shared, runtime: Some(runtime), listener: Mutex::new(listener) }
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the rows.
    pub fn serve(&self, rows: impl IntoIterator<Item = Row>) {
        *self.shared.upstream_data.write() = Arc::new(UpstreamData::of(rows));
    }

    /// Returns the rows it serves.
    pub fn upstream_data(&self) -> Arc<UpstreamData> {
        Arc::clone(&self.shared.upstream_data.read())
    }

    /// Replies to every later request as `behaviour` returns.
    pub fn reply_with(&self, behaviour: impl Fn(&Request) -> Reply + Send + Sync + 'static) {
        *self.shared.behaviour.write() = Arc::new(behaviour);
    }

    /// Holds back the replies to later requests, until the returned gate is opened.
    pub fn hold_replies(&self) -> Gate {
        let gate = Gate::closed();
        let held = gate.clone();
        self.reply_with(move |_| Reply::Behind(held.clone()));
        gate
    }

    /// Accepts connections and serves its rows again.
    pub fn recover(&self) {
        self.reply_with(|_| Reply::Page);
        self.listen();
    }

    /// Closes its connections and refuses new ones until [`Upstream::recover`].
    pub fn refuse_connections(&self) {
        let mut listener = self.listener.lock();
        let Listener::Accepting(task) = &*listener else { return };
        // A bound socket that does not listen refuses connections. It is bound before the listener is closed, so that nobody
        // else gets the port.
        let socket = bound_socket(self.address).expect("sockets of one user share a port");
        task.abort();
        wait_until("the fake upstream has stopped listening", || task.is_finished());
        *listener = Listener::Refusing(Some(socket));
    }

    fn listen(&self) {
        let mut state = self.listener.lock();
        if let (Listener::Refusing(socket), Some(runtime)) = (&mut *state, &self.runtime) {
            let _context = runtime.enter();
            let socket = socket.take().expect("a refusing upstream holds its port");
            let listener = socket.listen(BACKLOG).expect("a bound socket listens");
            *state = Listener::Accepting(runtime.spawn(accept(listener, Arc::clone(&self.shared))));
        }
    }

    /// Returns the recorded requests: all since the start or the last [`Upstream::clear_requests`].
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().clone()
    }

    /// Counts the recorded requests.
    pub fn request_count(&self) -> usize {
        self.shared.requests.lock().len()
    }

    /// Counts the recorded requests for the first page of a list.
    pub fn list_count(&self) -> usize {
        self.shared.requests.lock().iter().filter(|request| request.page() == 0).count()
    }

    /// Deletes the recorded requests.
    pub fn clear_requests(&self) {
        self.shared.requests.lock().clear();
    }

    /// Returns the number of body bytes written so far.
    pub fn sent_bytes(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }
}

/// Returns a socket that may share its port with another one of this function.
fn bound_socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => { connections.spawn(serve(stream, Arc::clone(&shared))); }
                Err(_) => tokio::task::yield_now().await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let Some(request) = Request::read(&mut stream).await else { return };
    shared.requests.lock().push(request.clone());
    let behaviour = Arc::clone(&shared.behaviour.read());
    let reply = behaviour(&request);
    let upstream_data = Arc::clone(&shared.upstream_data.read());
    // A client may close the connection early.
    let _ = reply.send(&request, &upstream_data, &mut stream, &shared.sent).await;
}
