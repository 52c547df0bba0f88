//! Who may read the admin page: a browser on this machine that was opened with the token.
//!
//! Invariant: [`guard`] stands before every path of the admin page, and its response headers are on every response.

use std::{fmt, net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri,
        header::{
            ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, FORWARDED, HOST, LOCATION, ORIGIN,
            REFERRER_POLICY, SET_COOKIE, VIA, X_CONTENT_TYPE_OPTIONS,
        },
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use subtle::ConstantTimeEq as _;

use super::{Admin, parameters::Parameters};
use crate::{exit_code, failure::Failure};

/// The policy of a response that sets no other: it loads nothing and runs nothing.
const NO_CONTENT: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// The headers, besides `X-Forwarded-For`, in which proxies and content delivery networks send the address of the client.
const CLIENT_ADDRESS_HEADERS: [&str; 12] = [
    "cf-connecting-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "true-client-ip",
    "x-azure-clientip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-original-forwarded-for",
    "x-original-url",
    "x-proxyuser-ip",
    "x-real-ip",
];

/// The secret of one run of the server: 256 random bits, in hex.
pub(super) struct Token(String);

impl Token {
    /// # Errors
    /// The system has no random bytes.
    pub(super) fn new() -> Result<Token, Failure> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| {
            let sentence = format!("Cannot make the token of the admin page: {error}");
            Failure::new(exit_code::FAILURE, sentence, "Check that the system has a source of random bytes.")
        })?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The text for the address.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on the place of the first difference.
    fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Method,
    Forwarded,
    Host,
    Site,
    Token,
}

impl Refusal {
    fn status(self) -> StatusCode {
        match self {
            Refusal::Method => StatusCode::METHOD_NOT_ALLOWED,
            Refusal::Forwarded | Refusal::Host | Refusal::Site => StatusCode::FORBIDDEN,
            Refusal::Token => StatusCode::UNAUTHORIZED,
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Refusal::Method => "The admin page is read-only: it answers GET and HEAD.",
            Refusal::Forwarded => {
                "The admin page is for this machine alone, and this request came through a proxy. Let no proxy pass /admin on."
            }
            Refusal::Host => {
                "The admin page is opened at 127.0.0.1, [::1] or localhost, and the name in this request is another."
            }
            Refusal::Site => "The admin page is not opened from another page. Copy the address that `serve` printed.",
            Refusal::Token => {
                "The admin page needs its token. Open the address with `?token=` that this run of `serve` printed."
            }
        }
    }
}

/// What a request may do.
#[derive(Debug, PartialEq, Eq)]
enum Access {
    /// It has the cookie.
    Read,
    /// It has the token in its address: the browser gets the cookie, and the address without the token.
    Enter,
}

/// Answers a request, or refuses it.
pub(super) async fn guard(State(admin): State<Arc<Admin>>, request: Request, next: Next) -> Response {
    let checked = check(&admin, request.method(), request.uri(), request.headers());
    let mut response = match checked {
        Ok(Access::Read) => next.run(request).await,
        Ok(Access::Enter) => enter(&admin),
        Err(refusal) => {
            let text = format!("{}\n", refusal.sentence());
            (refusal.status(), [(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
        }
    };
    let is_method = response.status() == StatusCode::METHOD_NOT_ALLOWED;
    let headers = response.headers_mut();
    if is_method {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(NO_CONTENT));
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn enter(admin: &Admin) -> Response {
    // No `Secure`: the page is served over HTTP, on the loopback.
    let cookie = format!("{}={}; Path={}; HttpOnly; SameSite=Strict", admin.cookie, admin.token.reveal(), admin.base);
    (StatusCode::SEE_OTHER, [(LOCATION, admin.base.clone()), (SET_COOKIE, cookie)]).into_response()
}

fn check(admin: &Admin, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Access, Refusal> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(Refusal::Method);
    }
    if headers.keys().any(is_of_a_proxy) {
        return Err(Refusal::Forwarded);
    }
    // A page of another name that resolves to this machine (DNS rebinding) sends its own name.
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    if hosts.next().is_some()
        || !host.is_some_and(is_loopback)
        || !uri.authority().is_none_or(|at| is_loopback(at.as_str()))
    {
        return Err(Refusal::Host);
    }
    // A page of another port of this machine is `same-site`.
    let sites = headers.get_all("sec-fetch-site");
    let is_foreign = sites.iter().any(|site| !matches!(site.as_bytes(), b"none" | b"same-origin"));
    let is_own = |origin: &HeaderValue| host.is_some_and(|host| origin == format!("http://{host}").as_str());
    if is_foreign || !headers.get_all(ORIGIN).iter().all(is_own) {
        return Err(Refusal::Site);
    }
    if let Some(given) = Parameters::of(uri).get("token") {
        return if admin.token.is(given) { Ok(Access::Enter) } else { Err(Refusal::Token) };
    }
    let mut cookies =
        headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(';'));
    let of_admin = |cookie: &str| {
        cookie.trim().split_once('=').is_some_and(|(name, value)| name == admin.cookie && admin.token.is(value))
    };
    if cookies.any(of_admin) { Ok(Access::Read) } else { Err(Refusal::Token) }
}

/// Whether a header says that the request came through a proxy, so that its sender may be on any machine. A proxy that adds no
/// such header is not recognized.
fn is_of_a_proxy(name: &HeaderName) -> bool {
    *name == FORWARDED
        || *name == VIA
        || name.as_str().starts_with("x-forwarded")
        || CLIENT_ADDRESS_HEADERS.contains(&name.as_str())
}

/// Whether the host of `HOST:PORT` is this machine.
fn is_loopback(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse().is_ok_and(|address: IpAddr| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_and_addresses_of_the_loopback_are_this_machine() {
        for host in [
            "localhost",
            "LOCALHOST:3000",
            "127.0.0.1",
            "127.0.0.1:3000",
            "127.9.9.9:1",
            "[::1]",
            "[::1]:3000",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "town.example",
            "localhost.town.example",
            "town.localhost.example:3000",
            "127.0.0.1.town.example",
            "0.0.0.0:3000",
            "10.0.0.1",
            "[::]:3000",
            "[fe80::1]",
            "127.0.0.1:80@town.example",
            "2130706433",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_token_is_another_each_time_and_matches_itself_alone() {
        let [token, other] = [Token::new().expect("a token"), Token::new().expect("a token")];
        assert_eq!(token.reveal().len(), 64);
        assert!(
            token.is(token.reveal()) && !token.is(other.reveal()) && !token.is("") && !token.is(&token.reveal()[1..])
        );
        assert_eq!(format!("{token:?}"), "Token");
    }

    #[test]
    fn headers_of_proxies_are_known() {
        for (name, is_of_proxy) in [
            ("x-forwarded-for", true),
            ("x-forwarded-host", true),
            ("x-forwarded-proto", true),
            ("x-forwarded", true),
            ("cf-connecting-ip", true),
            ("true-client-ip", true),
            ("x-client-ip", true),
            ("x-real-ip", true),
            ("forwarded", true),
            ("via", true),
            ("host", false),
            ("accept", false),
            ("x-request-id", false),
        ] {
            assert_eq!(is_of_a_proxy(&HeaderName::from_static(name)), is_of_proxy, "{name}");
        }
    }
}
