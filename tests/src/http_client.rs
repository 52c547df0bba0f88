//! A raw HTTP/1.1 client: it sends bytes unchanged, so that a test can send malformed requests.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// A response as received.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names (in lower case) and values.
    pub headers: Vec<(String, String)>,
    /// The body without chunk framing.
    pub body: Vec<u8>,
}

impl Response {
    /// Returns a header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the body as JSON.
    ///
    /// # Panics
    /// When it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{} is no JSON: {error}", String::from_utf8_lossy(&self.body));
        })
    }
}

/// Sends a request with this method, target and body.
pub fn request(address: SocketAddr, method: &str, target: &[u8], body: &[u8]) -> Response {
    let mut bytes = format!("{method} ").into_bytes();
    bytes.extend_from_slice(target);
    bytes.extend_from_slice(
        format!(" HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len())
            .as_bytes(),
    );
    bytes.extend_from_slice(body);
    send(address, &bytes)
}

/// Sends these bytes and reads the response.
///
/// # Panics
/// When the server closes the connection without a response.
pub fn send(address: SocketAddr, request: &[u8]) -> Response {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out above zero");
    // A server that refuses the request may close the connection before it has read everything.
    let _ = stream.write_all(request);
    let mut bytes = Vec::new();
    let mut chunk = [0; 16_384];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => {
                bytes.extend_from_slice(&chunk[..read]);
                // Some servers keep the connection open.
                if !request.starts_with(b"HEAD ") && is_complete(&bytes) {
                    break;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if bytes.is_empty() => panic!("no response: {error}"),
            Err(_) => break,
        }
    }
    read_response(&bytes).unwrap_or_else(|| panic!("no HTTP response: {:?}", String::from_utf8_lossy(&bytes)))
}

/// Whether a response has as many bytes as its `content-length` says; false without one.
fn is_complete(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    length.is_some_and(|length| bytes.len() >= end + 4 + length)
}

fn read_response(bytes: &[u8]) -> Option<Response> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut body = bytes[end + 4..].to_vec();
    if headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked") {
        body = unchunk(&body)?;
    }
    Some(Response { status, headers, body })
}

fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(end + 2..end + 2 + size)?);
        rest = rest.get(end + 4 + size..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunked_body_is_joined() {
        let response =
            read_response(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n");
        let response = response.expect("a response");
        assert_eq!((response.status, &response.body[..]), (200, &b"abcd"[..]));
    }
}
