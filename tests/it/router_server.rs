//! A server on the loopback with one of the axum routers of feature `http`.

use std::{net::SocketAddr, sync::mpsc, thread};

/// A running server; stops when dropped.
pub(crate) struct RouterServer {
    pub(crate) address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl RouterServer {
    /// Serves `app` on a thread of its own.
    pub(crate) fn start(app: axum::Router) -> RouterServer {
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
        RouterServer { address: address.recv().expect("the server starts"), stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for RouterServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
