//! The programs of ffi/examples compile under every warning and do what they say, as a user runs them.

#![cfg(unix)]

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    process::{Child, Command, Stdio},
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    pty::{OpenptyResult, Winsize, openpty},
    sys::termios::{LocalFlags, tcgetattr},
};
use townsquare::{
    Config,
    blocking::Client,
    spaces::{NewSpace, SpacePatch},
    storage::ListFiles,
};
use townsquare_tests::{paths::workspace, skip::skip, temp_dir, wait::wait_until};

use super::{
    compilers::STRICT,
    toolchain::{
        Language::{self, C11, Cpp17, Cpp20},
        link, run, text,
    },
};

/// Compiles an example into a folder; `None` and a reported skip without a compiler.
fn example(name: &str, language: Language, folder: &Path) -> Option<Command> {
    let program = folder.join("example");
    link(&workspace().join("ffi/examples").join(name), language, &STRICT, &program)?;
    let mut command = Command::new(program);
    command.env_remove("TOWNSQUARE_DATA_DIR").env_remove("CATALOG_API_KEY");
    Some(command)
}

fn names(changes: &[serde_json::Value]) -> Vec<String> {
    changes
        .iter()
        .map(|change| format!("{} {}", change["eventType"].as_str().expect("a text"), change["new"]["name"]))
        .collect()
}

/// Reads this many lines of JSON.
fn lines(child: &mut Child, count: usize) -> Vec<serde_json::Value> {
    let output = BufReader::new(child.stdout.as_mut().expect("a pipe"));
    output.lines().take(count).map(|line| serde_json::from_str(&line.expect("text")).expect("JSON")).collect()
}

/// Starts `watch`, and waits until it watches.
fn watching(mut command: Command) -> Child {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().expect("a pipe")).read_line(&mut line).expect("text");
    assert_eq!(line, "watching spaces\n");
    child
}

#[test]
fn the_watcher_prints_changes_of_other_processes_and_goes_on_where_it_stopped() {
    watches(C11);
}

#[test]
fn the_watcher_works_as_cpp() {
    watches(Cpp17);
}

fn watches(language: Language) {
    let folder = temp_dir();
    if example("watch.c", language, folder.path()).is_none() {
        return;
    }
    let (town, cursor) = (folder.path().join("town"), folder.path().join("cursor"));
    let start = || {
        let mut command = example("watch.c", language, folder.path()).expect("compiled before");
        command.arg(&town).arg("spaces").arg(&cursor);
        watching(command)
    };
    let end = |mut child: Child| {
        drop(child.stdin.take());
        assert!(child.wait().expect("it ends").success());
    };
    let client = Client::open(Config::new().data_dir(&town)).expect("opens");
    let service = client.as_service();
    let mut first = start();
    let harbor = service.spaces().create_space(NewSpace::named("Harbor")).expect("created");
    service.spaces().update_space(harbor.id, SpacePatch::new().name("Quay")).expect("updated");
    assert_eq!(names(&lines(&mut first, 2)), ["INSERT \"Harbor\"", "UPDATE \"Quay\""]);
    end(first);
    service.spaces().create_space(NewSpace::named("Pier")).expect("created");
    let mut second = start();
    service.spaces().delete_space(harbor.id).expect("deleted");
    assert_eq!(names(&lines(&mut second, 2)), ["INSERT \"Pier\"", "DELETE null"]);
    end(second);
    // A run that prints nothing has a position too, and one that is killed.
    end(start());
    service.spaces().create_space(NewSpace::named("Bank")).expect("created");
    let mut third = start();
    assert_eq!(names(&lines(&mut third, 1)), ["INSERT \"Bank\""]);
    let stored = || fs::read_to_string(&cursor).expect("a cursor");
    let before = stored();
    service.spaces().create_space(NewSpace::named("Dam")).expect("created");
    assert_eq!(names(&lines(&mut third, 1)), ["INSERT \"Dam\""]);
    wait_until("the position is stored", || stored() != before);
    third.kill().and_then(|()| third.wait()).expect("killed");
    service.spaces().create_space(NewSpace::named("Lock")).expect("created");
    let mut fourth = start();
    let seen = lines(&mut fourth, 1);
    assert!(["INSERT \"Dam\"", "INSERT \"Lock\""].contains(&names(&seen)[0].as_str()), "{seen:?}");
    end(fourth);
    // The first run of a watcher that sees no change.
    fs::remove_file(&cursor).expect("removed");
    end(start());
    service.spaces().create_space(NewSpace::named("Weir")).expect("created");
    let mut last = start();
    assert_eq!(names(&lines(&mut last, 1)), ["INSERT \"Weir\""]);
    end(last);
    client.close();
}

#[test]
fn the_program_with_libuv_prints_changes_from_its_loop() {
    prints_changes_with_libuv(C11);
}

#[test]
fn the_program_with_libuv_works_as_cpp() {
    prints_changes_with_libuv(Cpp17);
}

fn prints_changes_with_libuv(language: Language) {
    if !Path::new("/usr/include/uv.h").is_file() {
        return skip("ffi/examples/uv.c: libuv1-dev is missing");
    }
    prints_changes("uv.c", language, &["-luv".to_owned()]);
}

#[test]
fn the_program_with_qt_prints_changes_from_its_loop() {
    let qt = Command::new("pkg-config").args(["--cflags", "--libs", "Qt6Core"]).output();
    let Some(qt) = qt.ok().filter(|output| output.status.success()) else {
        return skip("ffi/examples/qt.cpp: qt6-base-dev or pkg-config is missing");
    };
    // Qt's own headers are not free of warnings, and its macros need code that may lie at any address.
    let flags = String::from_utf8(qt.stdout).expect("pkg-config writes text").replace("-I", "-isystem");
    let flags: Vec<_> = flags.split_whitespace().chain(["-fPIC"]).map(str::to_owned).collect();
    for language in [Cpp17, Cpp20] {
        prints_changes("qt.cpp", language, &flags);
    }
}

/// Runs an example that prints the changes of spaces until its input ends.
fn prints_changes(source: &str, language: Language, flags: &[String]) {
    let folder = temp_dir();
    let (program, town) = (folder.path().join("example"), folder.path().join("town"));
    let flags: Vec<_> = STRICT.into_iter().chain(flags.iter().map(String::as_str)).collect();
    let Some(()) = link(&workspace().join("ffi/examples").join(source), language, &flags, &program) else { return };
    let client = Client::open(Config::new().data_dir(&town)).expect("opens");
    let mut command = Command::new(program);
    command.arg(&town).env_remove("TOWNSQUARE_DATA_DIR").env_remove("CATALOG_API_KEY");
    let mut child = watching(command);
    let service = client.as_service();
    let harbor = service.spaces().create_space(NewSpace::named("Harbor")).expect("created");
    service.spaces().update_space(harbor.id, SpacePatch::new().name("Quay")).expect("updated");
    assert_eq!(names(&lines(&mut child, 2)), ["INSERT \"Harbor\"", "UPDATE \"Quay\""]);
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
    client.close();
}

#[test]
fn the_watcher_says_what_it_does_not_know() {
    let folder = temp_dir();
    let Some(mut command) = example("watch.c", C11, folder.path()) else { return };
    let output = run(command.arg(folder.path().join("town")).arg("secrets").arg(folder.path().join("cursor")));
    assert!(!output.status.success() && text(&output).contains("Subscribe failed: "), "{}", text(&output));
}

#[test]
fn sync_uploads_what_is_new_and_deletes_what_is_gone() {
    syncs(C11);
}

#[test]
fn sync_works_as_cpp() {
    syncs(Cpp17);
}

fn syncs(language: Language) {
    let folder = temp_dir();
    let (town, source) = (folder.path().join("town"), folder.path().join("source"));
    fs::create_dir_all(source.join("notes/old")).expect("a folder");
    for (path, content) in [("a.txt", "one"), ("notes/b.txt", "two"), ("notes/old/c.txt", "three")] {
        fs::write(source.join(path), content).expect("a file");
    }
    std::os::unix::fs::symlink("a.txt", source.join("link.txt")).expect("a link");
    let sync = |expected: &str| {
        let mut command = example("sync.c", language, folder.path())?;
        let output = run(command.arg(&town).arg(&source).arg("assets"));
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{expected}\n"), "{}", text(&output));
        Some(output.status.success())
    };
    let stored = || {
        let client = Client::open(Config::new().data_dir(&town)).expect("opens");
        let files = client.as_service().storage().list("assets", ListFiles::new()).expect("listed");
        client.close();
        files.iter().map(|file| format!("{} {}", file.path, file.size)).collect::<Vec<_>>()
    };
    if sync("3 uploaded, 0 unchanged, 0 deleted, 0 failed").is_none() {
        return;
    }
    assert_eq!(stored(), ["a.txt 3", "notes/b.txt 3", "notes/old/c.txt 5"]);
    assert_eq!(sync("0 uploaded, 3 unchanged, 0 deleted, 0 failed"), Some(true));
    fs::write(source.join("a.txt"), "longer").expect("a file");
    fs::remove_dir_all(source.join("notes/old")).expect("removed");
    assert_eq!(sync("1 uploaded, 1 unchanged, 1 deleted, 0 failed"), Some(true));
    assert_eq!(stored(), ["a.txt 6", "notes/b.txt 3"]);
    // A folder becomes a file, and a file a folder.
    fs::rename(source.join("notes"), folder.path().join("notes")).expect("moved");
    fs::write(source.join("notes"), "a file").expect("a file");
    assert_eq!(sync("1 uploaded, 1 unchanged, 1 deleted, 0 failed"), Some(true));
    assert_eq!(stored(), ["a.txt 6", "notes 6"]);
    fs::remove_file(source.join("notes")).expect("removed");
    fs::rename(folder.path().join("notes"), source.join("notes")).expect("moved");
    assert_eq!(sync("1 uploaded, 1 unchanged, 1 deleted, 0 failed"), Some(true));
    assert_eq!(stored(), ["a.txt 6", "notes/b.txt 3"]);
    // Nothing is deleted if something could not be read.
    fs::rename(&source, folder.path().join("away")).expect("moved");
    assert_eq!(sync("0 uploaded, 0 unchanged, 0 deleted, 1 failed"), Some(false));
    fs::write(&source, "a file").expect("a file");
    assert_eq!(sync("0 uploaded, 0 unchanged, 0 deleted, 1 failed"), Some(false));
    assert_eq!(stored(), ["a.txt 6", "notes/b.txt 3"]);
}

/// A terminal, as the user sees it.
struct Screen {
    child: Child,
    keyboard: File,
    /// Kept to read its settings.
    terminal: OwnedFd,
    seen: String,
}

impl Screen {
    fn start(mut command: Command) -> Screen {
        let size = Winsize { ws_row: 12, ws_col: 40, ws_xpixel: 0, ws_ypixel: 0 };
        let OpenptyResult { master, slave } = openpty(&size, None).expect("a terminal");
        let side = || Stdio::from(slave.try_clone().expect("a descriptor"));
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().expect("it starts");
        Screen { child, keyboard: master.into(), terminal: slave, seen: String::new() }
    }

    fn press(&mut self, keys: &str) {
        self.seen.clear();
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Reads until the screen has shown this text since the last key.
    fn shows(&mut self, expected: &str) {
        let mut bytes = [0; 4096];
        while !self.seen.contains(expected) {
            let mut waits = [PollFd::new(self.keyboard.as_fd(), PollFlags::POLLIN)];
            assert_eq!(
                poll(&mut waits, PollTimeout::from(60_000_u16)),
                Ok(1),
                "{expected:?} is not in {:?}",
                self.seen
            );
            let length = self.keyboard.read(&mut bytes).expect("the program writes");
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..length]));
        }
    }

    fn has_echo(&self) -> bool {
        tcgetattr(&self.terminal).expect("a terminal").local_flags.contains(LocalFlags::ECHO | LocalFlags::ICANON)
    }
}

#[test]
fn the_browser_searches_as_the_user_types_and_prints_the_chosen_address() {
    let folder = temp_dir();
    for language in [Cpp17, Cpp20] {
        let Some(mut command) = example("browse.cpp", language, folder.path()) else { return };
        command.arg(folder.path().join("town")).arg("sample:");
        let mut screen = Screen::start(command);
        screen.shows("\x1b[7mHarbor Chess");
        assert!(!screen.has_echo());
        screen.press("tidepol");
        screen.shows("> tidepol\r\n\r\n\x1b[7mTidepool  Small group chats\x1b[0m");
        screen.press("\x7f\x7f\x7f\x7f\x7f\x7f\x7f");
        screen.shows("> \r\n\r\n\x1b[7mHarbor Chess");
        screen.press("\x1b[B");
        screen.shows("\x1b[7mQuiz Lantern");
        assert!(screen.seen.lines().count() <= 12, "{}", screen.seen);
        screen.press("\r");
        screen.shows("https://quiz.lantern.example");
        assert!(screen.child.wait().expect("it ends").success());
        assert!(screen.has_echo(), "the terminal is as before");
    }
}

#[test]
fn the_browser_leaves_at_escape_and_needs_a_terminal() {
    let folder = temp_dir();
    let Some(mut command) = example("browse.cpp", Cpp17, folder.path()) else { return };
    command.arg(folder.path().join("town")).arg("sample:");
    let mut screen = Screen::start(command);
    screen.shows("Harbor Chess");
    screen.press("\x1b");
    screen.shows("\x1b[?1049l");
    assert!(screen.child.wait().expect("it ends").success());
    assert!(screen.has_echo());
    let mut command = example("browse.cpp", Cpp17, folder.path()).expect("compiled before");
    command.arg(folder.path().join("town")).arg("sample:").stdin(Stdio::null());
    assert_eq!(run(&mut command).status.code(), Some(2));
}

#[test]
fn the_browser_in_c_searches_as_the_user_types_and_shows_details() {
    if !Path::new("/usr/include/ncurses.h").is_file() {
        return skip("ffi/examples/browse.c: libncurses-dev is missing");
    }
    let folder = temp_dir();
    let program = folder.path().join("browse");
    let flags: Vec<_> = STRICT.into_iter().chain(["-lncursesw"]).collect();
    for language in [C11, Cpp17] {
        let Some(()) = link(&workspace().join("ffi/examples/browse.c"), language, &flags, &program) else { return };
        let start = || {
            let mut command = Command::new(&program);
            command.env_remove("TOWNSQUARE_DATA_DIR").env_remove("CATALOG_API_KEY");
            command.arg(folder.path().join("town")).arg("sample:").env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
            command
        };
        let mut screen = Screen::start(start());
        screen.shows(";7mHarbor Chess");
        assert!(!screen.has_echo());
        // After Ctrl-L the program draws the whole screen, else what has changed.
        screen.press("tidepol\x0c");
        screen.shows("> tidepol");
        screen.shows(";7mTidepool  Small group chats");
        screen.press("\r\x0c");
        screen.shows("https://tidepool.example");
        screen.press("\x1b\x0c");
        screen.shows("> tidepol");
        screen.press("\x7f\x7f\x7f\x7f\x7f\x7f\x7fé日\x0c");
        screen.shows("> é日");
        screen.press("\x7f\x0c");
        screen.shows("> é");
        assert!(!screen.seen.contains('日'), "{}", screen.seen);
        screen.press("\x7f\x0c");
        screen.shows(";7mHarbor Chess");
        screen.press("\x1bOB\x0c");
        screen.shows(";7mQuiz Lantern");
        screen.press("\x1b");
        screen.shows("\x1b[?1049l");
        assert!(screen.child.wait().expect("it ends").success());
        assert!(screen.has_echo(), "the terminal is as before");
        assert_eq!(run(start().stdin(Stdio::null())).status.code(), Some(2));
    }
}
