//! HTTP requests to every endpoint. Each gets a response; lengths are right; HEAD is GET without the body; a part of a file is the part
//! that its `content-range` names, and that the header `range` asks for.

use townsquare::{
    blocking::Client,
    storage::{ResponseBody, UploadOptions},
};

use super::{
    Target,
    fixture::{self, wait},
};

/// The files: path and content.
const FILES: [(&str, &[u8]); 3] = [
    ("/files/assets/digits.txt", b"0123456789abcdef"),
    ("/files/assets/empty", b""),
    ("/files/assets/a%20b/caf%C3%A9", b"x"),
];

/// See the module.
pub struct Http {
    client: Client,
}

/// A request. Its lines are separated by line feeds: method and target, headers, an empty line, the body.
struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    /// `None` for events, which have no end.
    body: Option<Vec<u8>>,
}

impl Target for Http {
    const NAME: &'static str = "http";

    fn new() -> Http {
        let options = fixture::in_memory().catalog_url("sample:").endpoint_origins("https://a.example");
        let client = fixture::open(options.event_heartbeat(std::time::Duration::from_secs(3_600)));
        client.discovery().refresh().expect("the sample is a catalog");
        client.realtime().start().expect("the change feed starts");
        for (path, content) in [("digits.txt", FILES[0].1), ("empty", FILES[1].1), ("a b/caf\u{e9}", FILES[2].1)] {
            let options = UploadOptions::new().content_type("text/plain");
            client.as_service().storage().upload("assets", path, content, options).expect("a valid path");
        }
        Http { client }
    }

    fn check(&mut self, data: &[u8]) {
        let Some(request) = Request::parse(data) else { return };
        let response = self.answer(&request, &request.method);
        response.check(&request, &request.method);
        if request.method == "GET" {
            check_file(&request, &response);
            let head = self.answer(&request, "HEAD");
            head.check(&request, "HEAD");
            response.check_head(&head, request.target.contains("/events"));
        }
    }
}

impl Http {
    fn answer(&self, request: &Request, method: &str) -> Response {
        let Request { target, headers, body, .. } = request;
        let response = self.client.handle_request(method, target, headers, body.clone()).expect("the client is open");
        let mut body = response.body;
        let mut bytes = Some(Vec::new()).filter(|_| body.size() != ResponseBody::UNKNOWN_SIZE);
        if let Some(bytes) = &mut bytes {
            while let Some(chunk) = wait(body.next_chunk()).expect("the file is in memory") {
                bytes.extend_from_slice(&chunk);
            }
        }
        Response { status: response.status, headers: response.headers, body: bytes }
    }
}

impl Request {
    fn parse(data: &[u8]) -> Option<Request> {
        let end = data.windows(2).position(|pair| pair == b"\n\n").unwrap_or(data.len());
        let (head, body) = data.split_at(end);
        let head = fixture::text(head);
        let mut lines = head.split('\n');
        let (method, target) = lines.next()?.split_once(' ')?;
        let headers = lines.map(|line| line.split_once(": ").unwrap_or((line, "")));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let body = body.get(2..).unwrap_or_default().to_vec();
        Some(Request { method: method.to_owned(), target: target.to_owned(), headers, body })
    }

    fn values(&self, wanted: &str) -> Vec<&str> {
        let found = self.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.as_str()).collect()
    }
}

impl Response {
    fn header(&self, wanted: &str) -> Option<&str> {
        self.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }

    fn check(&self, request: &Request, method: &str) {
        let context = || format!("{} to {method} {:?} {:?}", self.status, request.target, request.headers);
        // No request of an anonymous caller makes the library fail. 503 is the answer if the feed has too many readers.
        assert!((200..500).contains(&self.status) || self.status == 503, "{}", context());
        for (name, value) in &self.headers {
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'0'..=b'9')), "{name}");
            assert!(!value.contains(['\r', '\n', '\0']), "{name}: {value:?}");
        }
        let Some(body) = &self.body else { return };
        let length = self.header("content-length").map(|length| length.parse::<usize>().expect("a number"));
        match method {
            "HEAD" => assert!(body.is_empty(), "{}", context()),
            _ if matches!(self.status, 204 | 304) => assert!(length.is_none() && body.is_empty(), "{}", context()),
            _ => assert_eq!(length, Some(body.len()), "{}", context()),
        }
        let wrote = matches!(method, "PUT" | "DELETE") && self.status < 400;
        assert!(!wrote, "an anonymous caller changes a file: {}", context());
    }

    /// Compares the response to GET with the response to HEAD, which ignores ranges.
    fn check_head(&self, head: &Response, is_of_events: bool) {
        if matches!(self.status, 206 | 416) {
            return assert_eq!(head.status, 200);
        }
        if head.status == 405 {
            return assert!(is_of_events, "HEAD is allowed");
        }
        assert_eq!(self.status, head.status);
        assert_eq!(self.headers, head.headers);
    }
}

/// Checks the response to a GET of one of the files.
fn check_file(request: &Request, response: &Response) {
    let Some((_, content)) = FILES.iter().find(|(path, _)| *path == request.target) else { return };
    let body = response.body.as_deref().unwrap_or_default();
    let ranges = request.values("range");
    let asked = if let [range] = ranges[..] { asked(range, content.len()) } else { Asked::Whole };
    match response.status {
        200 => assert_eq!(body, *content),
        206 => {
            let range = response.header("content-range").and_then(|range| range.strip_prefix("bytes "));
            let (range, size) = range.and_then(|range| range.split_once('/')).expect("a part has a range");
            let (first, last) = range.split_once('-').expect("a range has two ends");
            let (first, last): (usize, usize) = (first.parse().expect("a number"), last.parse().expect("a number"));
            assert_eq!((size, body), (&*content.len().to_string(), &content[first..=last]));
            assert_eq!(asked, Asked::Part(first, last), "{ranges:?}");
        }
        416 => {
            assert_eq!(asked, Asked::Nothing, "{ranges:?}");
            assert_eq!(response.header("content-range"), Some(&*format!("bytes */{}", content.len())));
        }
        // A condition, or a malformed header or credential.
        status => assert!(matches!(status, 304 | 400 | 401 | 412), "{status}"),
    }
    let is_plain = request.headers.iter().all(|(name, _)| name.eq_ignore_ascii_case("range"));
    if is_plain && request.headers.iter().all(|(_, value)| value.bytes().all(|byte| (b' '..=b'~').contains(&byte))) {
        let expected = match asked {
            Asked::Whole => 200,
            Asked::Part(..) => 206,
            Asked::Nothing => 416,
        };
        assert_eq!(response.status, expected, "{ranges:?}");
    }
}

#[derive(Debug, PartialEq)]
enum Asked {
    Whole,
    /// The first and the last byte.
    Part(usize, usize),
    Nothing,
}

/// What a `range` asks of a file of `size` bytes (RFC 9110, 14), written once more.
fn asked(range: &str, size: usize) -> Asked {
    let Some((unit, spec)) = range.trim().split_once('=') else { return Asked::Whole };
    let Some((first, last)) = spec.split_once('-').filter(|_| unit.trim().eq_ignore_ascii_case("bytes")) else {
        return Asked::Whole;
    };
    // A number that is too large is larger than every file.
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().unwrap_or(usize::MAX));
    match (first.trim(), last.trim()) {
        ("", "") => Asked::Whole,
        ("", length) => match number(length) {
            None => Asked::Whole,
            Some(0) => Asked::Nothing,
            Some(_) if size == 0 => Asked::Whole,
            Some(length) => Asked::Part(size.saturating_sub(length), size - 1),
        },
        (first, "") => match number(first) {
            None => Asked::Whole,
            Some(first) if first >= size => Asked::Nothing,
            Some(first) => Asked::Part(first, size - 1),
        },
        (first, last) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => {
                if first >= size {
                    Asked::Nothing
                } else {
                    Asked::Part(first, last.min(size - 1))
                }
            }
            _ => Asked::Whole,
        },
    }
}
