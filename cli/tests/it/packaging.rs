//! The container file and the units of systemd: as far as they can be checked without a container and without systemd.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command},
};

use nix::sys::signal::Signal;
use townsquare_tests::skip::skip;

use crate::fixture::{Fixture, signal};

const UNITS: [&str; 2] = ["townsquare.service", "townsquare-backup.service"];

/// The command in the units.
const INSTALLED: &str = "/usr/bin/townsquare";

/// The most exposure that `systemd-analyze security` may state, of 100.
const THRESHOLD: &str = "15";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn read(name: &str) -> String {
    fs::read_to_string(workspace().join("cli/packaging").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The instructions of the container file: the word and the rest, with continued lines joined.
fn instructions() -> Vec<(String, String)> {
    let text = read("Containerfile").replace("\\\n", " ");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let split = |line: &str| {
        let (word, rest) = line.split_once(' ').expect("an instruction has arguments");
        (word.to_owned(), rest.trim().to_owned())
    };
    lines.map(split).collect()
}

/// The rests of the instructions of a word.
fn all(word: &str) -> Vec<String> {
    instructions().into_iter().filter(|(found, _)| found == word).map(|(_, rest)| rest).collect()
}

fn one(word: &str) -> String {
    let mut found = all(word);
    assert_eq!(found.len(), 1, "{word}: {found:?}");
    found.remove(0)
}

/// A list of words in the exec form, which needs no shell.
fn exec(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text} is a JSON list: {error}"))
}

/// Starts the command of a server at a free port. Returns its address.
fn started(town: &Fixture, arguments: &[String], data: &str) -> (Child, String) {
    let arguments: Vec<_> = arguments.iter().map(|argument| argument.replace(":3000", ":0")).collect();
    assert!(arguments.iter().any(|argument| argument.ends_with(":0")), "{arguments:?}");
    let mut command = town.bare();
    command.args(&arguments).env("TOWNSQUARE_DATA_DIR", data).env("TOWNSQUARE_CATALOG_URL", "sample:");
    let mut process = command.spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(process.stdout.take().expect("a pipe")).read_line(&mut line).expect("the address");
    let address = line.trim().strip_prefix("http://").unwrap_or_else(|| panic!("{line:?}")).to_owned();
    (process, address.replace("0.0.0.0", "127.0.0.1"))
}

#[test]
fn the_container_file_builds_what_the_workspace_has() {
    let words: Vec<String> = instructions().into_iter().map(|(word, _)| word).collect();
    let known = [
        "FROM",
        "WORKDIR",
        "COPY",
        "RUN",
        "USER",
        "ENV",
        "VOLUME",
        "EXPOSE",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
    ];
    assert!(words.iter().all(|word| known.contains(&word.as_str())), "{words:?}");
    let manifest = fs::read_to_string(workspace().join("Cargo.toml")).expect("the manifest");
    let manifest: toml::Table = manifest.parse().expect("TOML");
    let from = all("FROM");
    let version = manifest["workspace"]["package"]["rust-version"].as_str().expect("a version");
    assert!(from[0].starts_with(&format!("docker.io/library/rust:{version}-slim-")) && from[0].ends_with(" AS build"));
    assert!(from[0].ends_with("-slim-trixie AS build"), "{from:?}");
    // An older C library would not have what the build has linked.
    assert_eq!(from[1], "docker.io/library/debian:trixie-slim");
    assert_eq!(from.len(), 2);

    let build = all("RUN").into_iter().find(|run| run.starts_with("cargo build")).expect("a build");
    let build: Vec<_> = build.split(' ').collect();
    let after = |word: &str| build.iter().position(|found| *found == word).map(|at| build[at + 1]).expect("an option");
    assert!(build.contains(&"--locked"), "{build:?}");
    assert_eq!(after("--package"), env!("CARGO_PKG_NAME"));
    let profile = after("--profile");
    assert!(manifest["profile"].as_table().is_some_and(|profiles| profiles.contains_key(profile)), "{profile}");
    let copies = all("COPY");
    let program =
        Path::new(env!("CARGO_BIN_EXE_townsquare")).file_name().and_then(|name| name.to_str()).expect("a name");
    assert_eq!(
        copies,
        [". .".to_owned(), format!("--from=build /src/target/{profile}/{program} /usr/local/bin/{program}")]
    );
    assert_eq!(one("WORKDIR"), "/src");
    // The archive that is sent to the build leaves out what is large.
    let ignored = read("Containerfile.dockerignore");
    assert!(ignored.lines().any(|line| line == "target") && ignored.lines().any(|line| line == ".git"), "{ignored}");
    for member in manifest["workspace"]["members"].as_array().expect("members") {
        assert!(!ignored.lines().any(|line| Some(line) == member.as_str()), "{member:?} is left out");
    }

    // Nobody runs it as root, and the user may write its data.
    let user = one("USER");
    assert_eq!(user, "10001:10001");
    let setup = all("RUN").concat();
    for part in [
        "groupadd --gid 10001",
        "useradd --uid 10001 --gid 10001",
        "--owner 10001 --group 10001 --mode 0700 /var/lib/townsquare",
    ] {
        assert!(setup.contains(part), "{part}");
    }
    assert_eq!(one("ENV"), "TOWNSQUARE_DATA_DIR=/var/lib/townsquare");
    assert_eq!(exec(&one("VOLUME")), ["/var/lib/townsquare"]);
    assert_eq!((one("EXPOSE").as_str(), one("STOPSIGNAL").as_str()), ("3000", "SIGTERM"));
    // Only the first stage has a compiler, and no stage fetches a program by itself.
    assert!(!read("Containerfile").contains("curl") && !read("Containerfile").contains("wget"));
}

#[test]
fn the_commands_of_the_container_file_run() {
    let town = Fixture::new();
    assert_eq!(exec(&one("ENTRYPOINT")), ["townsquare"]);
    let all_healthchecks = all("HEALTHCHECK");
    // CMD also stands in the line of the health check.
    let (options, check) = all_healthchecks[0].split_once(" CMD ").expect("a command");
    assert!(options.split(' ').all(|option| option.starts_with("--")), "{options}");
    let check = exec(check);
    assert_eq!((check[0].as_str(), check[1].as_str()), ("townsquare", "health"));

    let (process, address) = started(&town, &exec(&one("CMD")), "data");
    let port = address.rsplit(':').next().expect("a port").to_owned();
    let healthy = |json: &[&str]| {
        let arguments = check[1..].iter().map(|argument| argument.replace(":3000", &format!(":{port}")));
        let arguments: Vec<_> = arguments.chain(json.iter().map(|text| (*text).to_owned())).collect();
        assert!(arguments.iter().any(|argument| argument.ends_with(&port)), "{arguments:?}");
        town.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert_eq!(healthy(&["--json"]).json()["status"], 200);
    healthy(&[]).succeeded();
    healthy(&["--prefix", "/nowhere"]).failed(75, "status 404");
    signal(&process, Signal::SIGTERM);
    assert!(process.wait_with_output().expect("it ends").status.success());
    healthy(&[]).failed(75, "is not ready");
    assert_eq!(town.run(&["health", "localhost"]).code, 2);
}

#[test]
fn a_server_without_http_is_not_ready() {
    let town = Fixture::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let answer = std::thread::spawn(move || {
        use std::io::Write as _;
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.write_all(b"SSH-2.0-x\r\n").expect("sent");
    });
    let ran = town.run(&["health", &address]);
    answer.join().expect("no panic");
    assert_eq!(ran.code, 75, "{ran:?}");
}

#[test]
fn the_units_are_valid_and_hardened() {
    let town = Fixture::new();
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        skip("systemd-analyze is not installed: the units of cli/packaging were not verified");
        return;
    }
    for name in UNITS {
        let text = read(name);
        assert!(text.contains(&format!("ExecStart={INSTALLED} ")), "{name}");
        // The command of this build is in its place.
        let unit = town.file(name, &text.replace(INSTALLED, env!("CARGO_BIN_EXE_townsquare")));
        let verified =
            Command::new("systemd-analyze").args(["verify", "--recursive-errors=no", &unit]).output().expect("it runs");
        let said = String::from_utf8_lossy(&verified.stderr);
        assert!(verified.status.success() && said.is_empty(), "{name}: {said}");
        let rated = Command::new("systemd-analyze")
            .args(["security", "--offline=true", &format!("--threshold={THRESHOLD}"), &unit])
            .output()
            .expect("it runs");
        assert!(rated.status.success(), "{name}: {}", String::from_utf8_lossy(&rated.stdout));
        // The check can fail: a unit that is not hardened is refused.
        let hardened = text.lines().filter(|line| !line.starts_with("Protect") && !line.starts_with("SystemCall"));
        let soft = town.file(&format!("soft-{name}"), &hardened.collect::<Vec<_>>().join("\n"));
        let rated = Command::new("systemd-analyze")
            .args(["security", "--offline=true", &format!("--threshold={THRESHOLD}"), &soft])
            .output()
            .expect("it runs");
        assert!(!rated.status.success(), "{name}");
    }
}

#[test]
fn the_commands_of_the_units_run() {
    let town = Fixture::seeded();
    for name in UNITS {
        let text = read(name);
        let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a command");
        let words: Vec<String> = start.split(' ').skip(1).map(str::to_owned).collect();
        let data =
            text.lines().find_map(|line| line.strip_prefix("Environment=TOWNSQUARE_DATA_DIR=")).expect("a folder");
        let folders = text.lines().find_map(|line| line.strip_prefix("StateDirectory=")).expect("folders");
        let folders: Vec<_> = folders.split(' ').map(|folder| format!("/var/lib/{folder}")).collect();
        assert!(folders.iter().any(|folder| folder == data), "{name}: {data}");
        // A backup fails with the exit code 2 while `serve` migrates the database, and is tried again.
        assert_eq!(text.contains("RestartPreventExitStatus=2\n"), words[0] == "serve", "{name}");
        if words[0] == "serve" {
            let (process, _) = started(&town, &words, "town");
            signal(&process, Signal::SIGTERM);
            assert!(process.wait_with_output().expect("it ends").status.success());
            continue;
        }
        assert!(words[0] == "backup" && folders.contains(&words[1]), "{name}: {words:?}");
        let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        arguments[1] = "backups";
        let process = town.command(&arguments).spawn().expect("it starts");
        let has_copy =
            || town.path("backups").exists() && town.names("backups").iter().any(|name| name.ends_with(".db"));
        Fixture::wait_until(has_copy);
        signal(&process, Signal::SIGTERM);
        assert!(process.wait_with_output().expect("it ends").status.success());
    }
}
