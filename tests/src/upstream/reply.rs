//! How the fake upstream answers one request: honestly, or in one of the ways that upstreams fail.

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

use super::{Request, Shelf, shelf};

/// One way to answer.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The page that was asked for.
    Honest,
    /// The page, once the gate opens.
    Behind(Gate),
    /// Status, headers, body.
    Answer(u16, Vec<(String, String)>, Vec<u8>),
    /// Nothing, ever; the connection stays open.
    Never,
    /// A reset instead of an answer.
    Reset,
    /// The page, a byte at a time with pauses.
    Trickle(Duration),
    /// A whole HTTP answer whose JSON stops half-way.
    CutOff,
    /// Half of the announced body, then a reset.
    ResetMidBody,
    /// So many bytes of JSON white space before the rows; nothing of it is ever held in memory.
    Flood(u64),
    /// The same, gzipped: about a thousandth of it on the wire.
    Bomb(u64),
    /// The page, with a cursor that is the same every time.
    Loop,
    /// The page, with a cursor that is new every time and never ends.
    EndlessPages,
    /// A redirect with this status to this place.
    Redirect(u16, String),
}

/// Holds answers back until it is opened; its clones open together.
#[derive(Debug, Clone)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// A closed gate.
    pub fn closed() -> Gate {
        Gate(Arc::new(watch::Sender::new(false)))
    }

    /// Lets every answer through, now and later.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    async fn passed(&self) {
        // The sender lives as long as this gate, so waiting ends only by opening.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}

impl Reply {
    /// An answer of this status with the upstream's error body.
    pub fn status(status: u16) -> Reply {
        Reply::Answer(status, Vec::new(), br#"{"message":"no","code":"Failed","status":500}"#.to_vec())
    }

    /// 200 with this body.
    pub fn body(body: impl Into<Vec<u8>>) -> Reply {
        Reply::Answer(200, vec![("Content-Type".into(), "application/json".into())], body.into())
    }

    /// 200 with a web page, as proxies and captive portals answer.
    pub fn html() -> Reply {
        let page = b"<!doctype html><html><body>Just a moment...</body></html>".to_vec();
        Reply::Answer(200, vec![("Content-Type".into(), "text/html".into())], page)
    }

    /// 429, with `Retry-After` when given.
    pub fn too_fast(retry_after: Option<&str>) -> Reply {
        let headers = retry_after.map(|value| ("Retry-After".to_owned(), value.to_owned()));
        Reply::Answer(429, headers.into_iter().collect(), br#"{"message":"rate limit"}"#.to_vec())
    }

    pub(super) async fn send(
        self,
        request: &Request,
        shelf: &Shelf,
        stream: &mut TcpStream,
        sent: &AtomicU64,
    ) -> io::Result<()> {
        let page = shelf.answer(request);
        let mut wire = Wire { stream, sent };
        match self {
            Reply::Honest => wire.whole(page.status, &[], page.body.as_bytes()).await,
            Reply::Behind(gate) => {
                gate.passed().await;
                wire.whole(page.status, &[], page.body.as_bytes()).await
            }
            Reply::Answer(status, headers, body) => wire.whole(status, &headers, &body).await,
            Reply::Never => std::future::pending().await,
            Reply::Reset => wire.reset(),
            Reply::Trickle(pause) => {
                wire.head(page.status, &[], Some(page.body.len() as u64)).await?;
                for byte in page.body.into_bytes() {
                    wire.body(&[byte]).await?;
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
            Reply::Loop => wire.whole(200, &[], with_cursor(request, shelf, &shelf::cursor_at(0)).as_bytes()).await,
            Reply::EndlessPages => {
                let next = shelf::cursor_at(request.offset().unwrap_or(0) + request.limit());
                let body = with_cursor(request, shelf, &next);
                wire.whole(200, &[], body.as_bytes()).await
            }
            Reply::Redirect(status, to) => wire.whole(status, &[("Location".to_owned(), to)], b"").await,
        }
    }
}

/// The first page of the request's list, with this cursor behind it.
fn with_cursor(request: &Request, shelf: &Shelf, cursor: &str) -> String {
    let rows = shelf.list(request.window(), &request.categories(), &request.networks());
    shelf::body(&rows[..rows.len().min(request.limit())], &format!("\"{cursor}\""))
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

/// Deflate blocks of so many spaces, flushed so that they may be repeated.
fn deflated_blanks(count: usize) -> Vec<u8> {
    let mut deflated = Vec::with_capacity(count / 100 + 1024);
    // Writing into a vector with room for it does not fail.
    let _ =
        Compress::new(Compression::fast(), false).compress_vec(&vec![b' '; count], &mut deflated, FlushCompress::Full);
    deflated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_blocks_inflate_to_repeated_blanks() {
        let mut twice = deflated_blanks(1 << 20);
        assert!(twice.len() < 20_000, "{}", twice.len());
        twice.extend_from_within(..);
        let mut out = Vec::with_capacity((2 << 20) + 1);
        let mut inflate = flate2::Decompress::new(false);
        inflate.decompress_vec(&twice, &mut out, flate2::FlushDecompress::None).expect("valid deflate");
        assert_eq!((out.len(), out.iter().all(|byte| *byte == b' ')), (2 << 20, true));
    }
}
