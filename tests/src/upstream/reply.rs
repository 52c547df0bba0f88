//! The fake upstream's replies: the requested page, or one of the ways in which upstreams fail.

use std::{
    io::{self, Write as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use flate2::{Compress, Compression, FlushCompress};
use tokio::{io::AsyncWriteExt, net::TcpStream, sync::watch};

use super::{Request, UpstreamData, upstream_data};

/// A way to reply.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The requested page.
    Page,
    /// The page, after the gate opened.
    Behind(Gate),
    /// Status, headers, body.
    Response(u16, Vec<(String, String)>, Vec<u8>),
    /// No reply; the connection stays open.
    Never,
    /// A connection reset without a reply.
    Reset,
    /// The page, a byte at a time with this pause.
    Trickle(Duration),
    /// A complete HTTP response whose JSON ends half-way.
    CutOff,
    /// Half of the announced body, then a connection reset.
    ResetMidBody,
    /// This many bytes of JSON white space before the rows, streamed.
    Flood(u64),
    /// This many bytes of JSON white space, compressed to about a thousandth.
    Bomb(u64),
    /// The page, with the same cursor every time.
    Loop,
    /// The page, with a new cursor every time.
    EndlessPages,
    /// A redirect with this status to this URL.
    Redirect(u16, String),
}

/// Delays replies until it is opened; clones share one state.
#[derive(Debug, Clone)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// Makes a closed gate.
    pub fn closed() -> Gate {
        Gate(Arc::new(watch::Sender::new(false)))
    }

    /// Lets all replies through, also later ones.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    async fn passed(&self) {
        // The sender lives as long as the gate, so the wait ends only when the gate opens.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

impl Reply {
    /// Replies with this status and the upstream's error body.
    pub fn status(status: u16) -> Reply {
        Reply::Response(status, Vec::new(), br#"{"message":"no","code":"Failed","status":500}"#.to_vec())
    }

    /// Replies 200 with this body.
    pub fn body(body: impl Into<Vec<u8>>) -> Reply {
        Reply::Response(200, vec![("Content-Type".into(), "application/json".into())], body.into())
    }

    /// Replies 200 with a web page, as proxies and captive portals do.
    pub fn html() -> Reply {
        let page = b"<!doctype html><html><body>Just a moment...</body></html>".to_vec();
        Reply::Response(200, vec![("Content-Type".into(), "text/html".into())], page)
    }

    /// Replies 429, with this `Retry-After`.
    pub fn rate_limited(retry_after: Option<&str>) -> Reply {
        let headers = retry_after.map(|value| ("Retry-After".to_owned(), value.to_owned()));
        Reply::Response(429, headers.into_iter().collect(), br#"{"message":"rate limit"}"#.to_vec())
    }

    pub(super) async fn send(
        self,
        request: &Request,
        upstream_data: &UpstreamData,
        stream: &mut TcpStream,
        sent: &AtomicU64,
    ) -> io::Result<()> {
        let page = upstream_data.page(request);
        let mut wire = Wire { stream, sent };
        match self {
            Reply::Page => wire.whole(page.status, &[], page.body.as_bytes()).await,
            Reply::Behind(gate) => {
                gate.passed().await;
                wire.whole(page.status, &[], page.body.as_bytes()).await
            }
            Reply::Response(status, headers, body) => wire.whole(status, &headers, &body).await,
            Reply::Never => std::future::pending().await,
            Reply::Reset => wire.reset(),
            Reply::Trickle(pause) => {
                wire.head(page.status, &[], Some(page.body.len() as u64)).await?;
                for byte in page.body.into_bytes() {
                    wire.body(&[byte]).await?;
                    #[allow(clippy::disallowed_methods, reason = "a slow upstream")]
                    tokio::time::sleep(pause).await;
                }
                Ok(())
            }
            Reply::CutOff => wire.whole(200, &[], &page.body.as_bytes()[..page.body.len() / 2]).await,
            Reply::ResetMidBody => {
                wire.head(200, &[], Some(page.body.len() as u64)).await?;
                wire.body(&page.body.as_bytes()[..page.body.len() / 2]).await?;
                wire.reset()
            }
            Reply::Flood(bytes) => wire.flood(bytes, &page.body).await,
            Reply::Bomb(bytes) => wire.bomb(bytes).await,
            Reply::Loop => {
                wire.whole(200, &[], with_cursor(request, upstream_data, &upstream_data::cursor_at(0)).as_bytes()).await
            }
            Reply::EndlessPages => {
                let next = upstream_data::cursor_at(request.offset().unwrap_or(0) + request.limit());
                let body = with_cursor(request, upstream_data, &next);
                wire.whole(200, &[], body.as_bytes()).await
            }
            Reply::Redirect(status, to) => wire.whole(status, &[("Location".to_owned(), to)], b"").await,
        }
    }
}

/// Returns the first page of the requested list, with this cursor.
fn with_cursor(request: &Request, upstream_data: &UpstreamData, cursor: &str) -> String {
    let rows = upstream_data.list(request.window(), &request.categories(), &request.networks());
    upstream_data::body(&rows[..rows.len().min(request.limit())], &format!("\"{cursor}\""))
}

struct Wire<'a> {
    stream: &'a mut TcpStream,
    sent: &'a AtomicU64,
}

impl Wire<'_> {
    async fn head(&mut self, status: u16, headers: &[(String, String)], length: Option<u64>) -> io::Result<()> {
        let mut head = Vec::new();
        write!(head, "HTTP/1.1 {status} Status\r\nConnection: close\r\n")?;
        if let Some(length) = length {
            write!(head, "Content-Length: {length}\r\n")?;
        }
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            write!(head, "Content-Type: application/json; charset=utf-8\r\n")?;
        }
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n")?;
        }
        head.extend_from_slice(b"\r\n");
        self.stream.write_all(&head).await
    }

    async fn body(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    async fn whole(&mut self, status: u16, headers: &[(String, String)], body: &[u8]) -> io::Result<()> {
        self.head(status, headers, Some(body.len() as u64)).await?;
        self.body(body).await?;
        self.stream.shutdown().await
    }

    fn reset(&mut self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }

    async fn flood(&mut self, bytes: u64, page: &str) -> io::Result<()> {
        let blank = vec![b' '; 65_536];
        let rounds = bytes / blank.len() as u64;
        self.head(200, &[], Some(rounds * blank.len() as u64 + page.len() as u64)).await?;
        for _ in 0..rounds {
            self.body(&blank).await?;
        }
        self.body(page.as_bytes()).await
    }

    async fn bomb(&mut self, bytes: u64) -> io::Result<()> {
        let gzip = [("Content-Encoding".to_owned(), "gzip".to_owned())];
        self.head(200, &gzip, None).await?;
        self.body(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]).await?;
        let mebibyte = deflated_blanks(1 << 20);
        for _ in 0..bytes >> 20 {
            self.body(&mebibyte).await?;
        }
        self.stream.shutdown().await
    }
}

/// Returns deflate blocks of `count` spaces, flushed so that they can be repeated.
fn deflated_blanks(count: usize) -> Vec<u8> {
    let mut deflated = Vec::with_capacity(count / 100 + 1024);
    // Compressing into a vector with enough capacity does not fail.
    let _ =
        Compress::new(Compression::fast(), false).compress_vec(&vec![b' '; count], &mut deflated, FlushCompress::Full);
    deflated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_blocks_inflate_to_repeated_spaces() {
        let mut twice = deflated_blanks(1 << 20);
        assert!(twice.len() < 20_000, "{}", twice.len());
        twice.extend_from_within(..);
        let mut out = Vec::with_capacity((2 << 20) + 1);
        let mut inflate = flate2::Decompress::new(false);
        inflate.decompress_vec(&twice, &mut out, flate2::FlushDecompress::None).expect("valid deflate");
        assert_eq!((out.len(), out.iter().all(|byte| *byte == b' ')), (2 << 20, true));
    }
}
