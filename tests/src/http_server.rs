//! An HTTP server on the loopback interface, for axum routers.

use std::{net::SocketAddr, sync::mpsc, thread};

use axum::Router;

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
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (bound, address) = mpsc::channel();
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
                bound.send(listener.local_addr().expect("an address")).expect("somebody waits");
                tokio::select! {
                    serve = axum::serve(listener, app) => serve.expect("it serves"),
                    _ = stopped => {}
                }
            });
        };
        let thread = thread::spawn(serve);
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
