//! A headless Chromium, driven over chromedriver's WebDriver protocol (W3C WebDriver).
//!
//! Invariant: each browser has a profile of its own, which is new and empty. Dropping the browser ends its processes.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{http_client, skip::skip, temp_dir};

/// A browser with one window.
pub struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
    _profile: TempDir,
}

/// How often chromedriver is started. It takes a free port of IPv4, and ends if another program has that port of IPv6.
const DRIVER_STARTS: usize = 5;

/// Starts chromedriver on a free port. Returns `None` if it ends without taking one.
fn start_driver(program: &Path) -> Option<(Child, u16)> {
    let mut driver = Command::new(program)
        .arg("--port=0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver is a program");
    let mut lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let port = lines.find_map(|line| line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok());
    let Some(port) = port else {
        let _ = driver.wait();
        return None;
    };
    // The driver must not block on a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    Some((driver, port))
}

impl Browser {
    /// Starts a browser. Returns `None` and reports a skip if Chromium or chromedriver is not installed.
    ///
    /// # Panics
    /// When they are installed and do not start.
    pub fn start() -> Option<Browser> {
        let path = env::var_os("PATH").unwrap_or_default();
        let find = |names: &[&str]| {
            let files = env::split_paths(&path).flat_map(|folder| names.iter().map(move |name| folder.join(name)));
            files.into_iter().find(|file| file.is_file())
        };
        let (Some(chromium), Some(driver)) =
            (find(&["chromium", "chromium-browser", "google-chrome"]), find(&["chromedriver"]))
        else {
            skip("the page in a browser: there is no chromium with chromedriver");
            return None;
        };
        let (driver, port) = (0..DRIVER_STARTS).find_map(|_| start_driver(&driver)).expect("chromedriver starts");
        let profile = temp_dir();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut browser = Browser { driver, address, session: String::new(), _profile: profile };
        let profile = format!("--user-data-dir={}", browser._profile.path().display());
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1280,900",
            &profile,
        ];
        let options = json!({"binary": chromium, "args": arguments});
        let capabilities = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}});
        let session = browser.command("POST", "/session", &capabilities);
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        Some(browser)
    }

    /// Opens a page and waits until it is loaded.
    pub fn open(&self, url: &str) {
        self.run("/url", &json!({"url": url}));
    }

    /// Runs JavaScript in the page and returns what it returns.
    pub fn eval(&self, script: &str) -> Value {
        self.run("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Presses and releases these keys, one after another.
    pub fn press(&self, keys: &str) {
        let actions: Vec<_> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.to_string()})))
            .collect();
        self.run("/actions", &json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}));
    }

    /// Gives the page the size and the pixel density of a phone.
    pub fn be_a_phone(&self, width: u32, height: u32) {
        let parameters = json!({"width": width, "height": height, "deviceScaleFactor": 2, "mobile": true});
        self.devtools("Emulation.setDeviceMetricsOverride", &parameters);
    }

    /// Ends the scripts of pages: what the tests evaluate still runs.
    pub fn be_without_scripts(&self) {
        self.devtools("Emulation.setScriptExecutionDisabled", &json!({"value": true}));
    }

    /// Makes the visitor prefer `light` or `dark` colours.
    pub fn prefer_colours(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.devtools("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// Sends a command of the DevTools protocol and returns its result.
    pub fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.run("/goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    /// Undoes [`be_a_phone`](Browser::be_a_phone).
    pub fn be_a_desktop(&self) {
        self.devtools("Emulation.clearDeviceMetricsOverride", &json!({}));
    }

    /// Writes a PNG of the window.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn screenshot(&self, file: &Path) {
        let png = self.command("GET", &format!("/session/{}/screenshot", self.session), &Value::Null);
        fs::create_dir_all(file.parent().expect("a folder")).expect("the target folder can be written");
        fs::write(file, decoded(png.as_str().expect("base64"))).expect("the target folder can be written");
    }

    fn run(&self, command: &str, body: &Value) -> Value {
        self.command("POST", &format!("/session/{}{command}", self.session), body)
    }

    fn command(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let response = http_client::request(self.address, method, path.as_bytes(), body.as_bytes());
        let value = response.json()["value"].take();
        assert_eq!(response.status, 200, "{method} {path}: {value}");
        value
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let path = format!("/session/{}", self.session);
            // Ends the browser; the driver ends without it.
            let _ = std::panic::catch_unwind(|| http_client::request(self.address, "DELETE", path.as_bytes(), b""));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Decodes base64.
fn decoded(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::with_capacity(text.len() * 3 / 4), 0u32, 0);
    for letter in text.bytes() {
        let Some(value) = ALPHABET.iter().position(|known| *known == letter) else { continue };
        bits = (bits << 6) | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
