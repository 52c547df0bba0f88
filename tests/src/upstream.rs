//! A catalog API on the loopback (UPSTREAM 1): honest by default, and as bad as a test wants it.
//!
//! Invariant: it records every request before it answers, and when it is dropped its port is closed and its threads
//! end. Each connection serves one request, so that no answer depends on an earlier one.

mod reply;
mod request;
mod shelf;

use std::{
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
    shelf::{CATEGORIES, NETWORKS, PATH, Shelf, WINDOWS, in_order_of},
};
use crate::{catalog::Row, wait::wait_until};

/// The key that the upstream wants to see in `x-api-key`.
pub const KEY: &str = "MARKED-key-of-the-tests";

type Behaviour = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// A running upstream.
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
    /// Either a task that accepts, or the port held without listening.
    door: Mutex<Door>,
}

enum Door {
    Open(JoinHandle<()>),
    Shut(Option<TcpSocket>),
}

struct Shared {
    shelf: RwLock<Arc<Shelf>>,
    behaviour: RwLock<Behaviour>,
    requests: Mutex<Vec<Request>>,
    sent: Arc<AtomicU64>,
}

impl Upstream {
    /// An honest upstream with these rows, first is most trending.
    ///
    /// # Panics
    /// When there is no loopback to listen on.
    pub fn of(rows: impl IntoIterator<Item = Row>) -> Upstream {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("fake-upstream")
            .enable_all()
            .build()
            .expect("a runtime for the fake upstream");
        let shared = Arc::new(Shared {
            shelf: RwLock::new(Arc::new(Shelf::of(rows))),
            behaviour: RwLock::new(Arc::new(|_: &Request| Reply::Honest)),
            requests: Mutex::default(),
            sent: Arc::default(),
        });
        let listener = {
            let _context = runtime.enter();
            std::net::TcpListener::bind("127.0.0.1:0")
                .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
                .and_then(TcpListener::from_std)
                .expect("a port on the loopback")
        };
        let address = listener.local_addr().expect("a bound socket has an address");
        let door = Door::Open(runtime.spawn(accept(listener, Arc::clone(&shared))));
        Upstream { address, shared, runtime: Some(runtime), door: Mutex::new(door) }
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the rows.
    pub fn serve(&self, rows: impl IntoIterator<Item = Row>) {
        *self.shared.shelf.write() = Arc::new(Shelf::of(rows));
    }

    /// The rows it serves now.
    pub fn shelf(&self) -> Arc<Shelf> {
        Arc::clone(&self.shared.shelf.read())
    }

    /// From now on answers as `behaviour` says.
    pub fn behave(&self, behaviour: impl Fn(&Request) -> Reply + Send + Sync + 'static) {
        *self.shared.behaviour.write() = Arc::new(behaviour);
    }

    /// From now on is honest, and listens.
    pub fn recover(&self) {
        self.behave(|_| Reply::Honest);
        self.listen();
    }

    /// From now on refuses connections, and cuts those it has.
    ///
    /// # Panics
    /// When the port is lost to somebody else.
    pub fn refuse(&self) {
        let mut door = self.door.lock();
        let Door::Open(task) = &*door else { return };
        task.abort();
        wait_until("the fake upstream has stopped listening", || task.is_finished());
        // Bound but not listening: connections are refused, and nobody else gets the port.
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_reuseaddr(true).expect("an option of every socket");
        socket.bind(self.address).expect("the port that was just left");
        *door = Door::Shut(Some(socket));
    }

    fn listen(&self) {
        let mut door = self.door.lock();
        if let (Door::Shut(socket), Some(runtime)) = (&mut *door, &self.runtime) {
            let _context = runtime.enter();
            let socket = socket.take().expect("a shut door holds its port");
            let listener = socket.listen(1024).expect("a bound socket listens");
            *door = Door::Open(runtime.spawn(accept(listener, Arc::clone(&self.shared))));
        }
    }

    /// Every request so far, in the order they came.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().clone()
    }

    /// How many requests have come.
    pub fn count(&self) -> usize {
        self.shared.requests.lock().len()
    }

    /// How many lists were begun: requests for a first page.
    pub fn lists(&self) -> usize {
        self.shared.requests.lock().iter().filter(|request| request.page() == 0).count()
    }

    /// Forgets the requests so far.
    pub fn forget(&self) {
        self.shared.requests.lock().clear();
    }

    /// Bytes of bodies handed to the network so far.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }
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
    let shelf = Arc::clone(&shared.shelf.read());
    // A client that hangs up has its reasons.
    let _ = reply.send(&request, &shelf, &mut stream, &shared.sent).await;
}
