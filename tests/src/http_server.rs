//! An HTTP server on the loopback interface, for axum routers.

use std::{net::SocketAddr, sync::mpsc, thread};

use axum::Router;
use tokio::net::TcpListener;

/// A server; stops when dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Server {
    /// Serves `app` on a free port.
    ///
    /// # Panics
    /// When no port is free.
    pub fn of(app: Router) -> Server {
        Server::start(|listener| axum::serve(listener, app).into_future())
    }

    /// Serves `app` as [`of`](Server::of). Its requests have the addresses of their peers.
    ///
    /// # Panics
    /// When no port is free.
    pub fn with_peers(app: Router) -> Server {
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        Server::start(|listener| axum::serve(listener, app).into_future())
    }

    fn start<Serving>(serve: impl FnOnce(TcpListener) -> Serving + Send + 'static) -> Server
    where
        Serving: Future<Output = std::io::Result<()>>,
    {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (bound, address) = mpsc::channel();
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                bound.send(listener.local_addr().expect("an address")).expect("somebody waits");
                tokio::select! {
                    served = serve(listener) => served.expect("it serves"),
                    _ = stopped => {}
                }
            });
        };
        let thread = thread::spawn(run);
        Server { address: address.recv().expect("the server starts"), stop: Some(stop), thread: Some(thread) }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
