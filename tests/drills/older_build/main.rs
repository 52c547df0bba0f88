//! One process of the drill `older_build.py`, which compiles this file with an older commit of the library and with this one.
//!
//! `work URL FOLDER NAME` writes and follows the change feed until its standard input ends. It prints each acknowledged write, and each
//! space that the feed delivers. `check URL FOLDER` reads the writes from its standard input, and prints each one that is not there as
//! it was written, and what `Client::check` finds.

use std::{
    env, io,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use townsquare::{
    Config,
    blocking::Client,
    check::{CheckDepth, Severity},
    realtime::ChangeRequest,
    spaces::NewSpace,
    storage::UploadOptions,
};

const WRITERS: usize = 4;

/// Small files are in the database, large ones in the folder.
const SIZES: [usize; 2] = [100, 200_000];

/// The feed has delivered everything when it has delivered nothing for this time.
const QUIET: Duration = Duration::from_secs(3);

fn main() {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [role, url, folder, rest @ ..] = arguments.as_slice() else { panic!("a role, a URL and a folder") };
    let client = Client::open(Config::new().database_url(url).data_dir(folder).catalog_api_key("")).expect("it opens");
    match (role.as_str(), rest) {
        ("work", [name]) => work(&client.as_service(), name),
        ("check", []) => check(&client.as_service(), &client),
        _ => panic!("work NAME, or check"),
    }
    client.close();
    println!("END");
}

fn work(service: &Client, name: &str) {
    let mut changes = service.realtime().changes(ChangeRequest::table("spaces")).expect("the feed");
    println!("OPEN");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let is_over = &is_over;
            scope.spawn(move || {
                for number in 0.. {
                    if is_over.load(Ordering::SeqCst) {
                        break;
                    }
                    write(service, &format!("{name}-{writer}-{number}"), SIZES[number % 2]);
                }
            });
        }
        scope.spawn(|| {
            while let Some(change) = changes.next_within(QUIET) {
                let change = change.expect("the feed continues");
                println!("SEEN {}", change.new.expect("spaces are inserted alone")["id"].as_str().expect("an id"));
            }
        });
        io::copy(&mut io::stdin(), &mut io::sink()).expect("a pipe");
        is_over.store(true, Ordering::SeqCst);
    });
}

fn write(service: &Client, label: &str, size: usize) {
    let space = service.spaces().create_space(NewSpace::named(label)).expect("a space");
    println!("SPACE {} {label}", space.id);
    let uploaded = service.storage().upload("assets", &path(label), content(label, size), UploadOptions::new());
    uploaded.expect("a file");
    println!("FILE {size} {label}");
}

fn path(label: &str) -> String {
    format!("{label}.txt")
}

fn content(label: &str, size: usize) -> String {
    label.repeat(size / label.len())
}

fn check(service: &Client, client: &Client) {
    for line in io::stdin().lines() {
        let line = line.expect("a line");
        let is_there = match line.split(' ').collect::<Vec<_>>()[..] {
            ["SPACE", id, label] => {
                service.spaces().get_space(id.parse().expect("an id")).is_ok_and(|space| space.name == label)
            }
            ["FILE", size, label] => {
                let content = content(label, size.parse().expect("a size"));
                service.storage().download("assets", &path(label)).is_ok_and(|bytes| bytes == content)
            }
            _ => panic!("{line}"),
        };
        if !is_there {
            println!("LOST {line}");
        }
    }
    for finding in client.check(CheckDepth::Full).expect("checked") {
        if finding.severity() == Severity::Error {
            println!("FINDING {finding:?}");
        }
    }
}
