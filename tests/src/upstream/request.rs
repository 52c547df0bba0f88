//! A request that the fake upstream received.

use tokio::{io::AsyncReadExt, net::TcpStream};

/// Method, target and headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET`, …
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// Decoded query parameters in their order.
    pub query: Vec<(String, String)>,
    /// Names (in lower case) and values.
    pub headers: Vec<(String, String)>,
}

impl Request {
    /// Reads a request head; `None` when the client sent no complete one.
    pub(super) async fn read(stream: &mut TcpStream) -> Option<Request> {
        let mut bytes = Vec::new();
        let mut chunk = [0; 4096];
        while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
            match stream.read(&mut chunk).await {
                Ok(read) if read > 0 && bytes.len() < 65_536 => bytes.extend_from_slice(&chunk[..read]),
                _ => return None,
            }
        }
        Request::parse(&String::from_utf8_lossy(&bytes))
    }

    fn parse(head: &str) -> Option<Request> {
        let mut lines = head.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let (method, target) = (first.next()?.to_owned(), first.next()?);
        // A request through a proxy names the host in its target.
        let target = match target.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("/", |slash| &rest[slash..]),
            None => target,
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
        Some(Request { method, path: path.to_owned(), query: query.collect(), headers: headers.collect() })
    }

    /// Returns a header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns a query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the row of the cursor; `None` for an unknown cursor.
    pub fn offset(&self) -> Option<usize> {
        match self.parameter("cursor") {
            None | Some("") => Some(0),
            Some(cursor) => super::upstream_data::offset_of(cursor),
        }
    }

    /// Returns the requested number of rows.
    pub fn limit(&self) -> usize {
        self.parameter("limit").and_then(|limit| limit.parse().ok()).unwrap_or(100)
    }

    /// Returns the requested page, from 0.
    pub fn page(&self) -> usize {
        self.offset().unwrap_or(0) / self.limit().max(1)
    }

    /// Returns the requested time window; the upstream's default is 7d.
    pub fn window(&self) -> &str {
        self.parameter("time_window").filter(|window| !window.is_empty()).unwrap_or("7d")
    }

    /// Returns the requested networks.
    pub fn networks(&self) -> Vec<&str> {
        list(self.parameter("networks"))
    }

    /// Returns the requested categories.
    pub fn categories(&self) -> Vec<&str> {
        list(self.parameter("categories"))
    }
}

fn list(value: Option<&str>) -> Vec<&str> {
    value.unwrap_or("").split(',').filter(|item| !item.is_empty()).collect()
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
                std::str::from_utf8(&digits).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok()).unwrap_or(b'?')
            }
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_head_is_parsed() {
        let head = "GET /a/b?limit=2&cursor=c%2B%2F%3D%26%2520%C3%A94&x=a+b HTTP/1.1\r\nX-Api-Key:  k \r\n\r\n";
        let request = Request::parse(head).expect("a request");
        assert_eq!((request.path.as_str(), request.header("x-api-key")), ("/a/b", Some("k")));
        assert_eq!((request.parameter("cursor"), request.parameter("x")), (Some("c+/=&%20é4"), Some("a b")));
        assert_eq!((request.page(), request.window()), (2, "7d"));
    }
}
