//! Cost of signing in and of checking the caller.
//!
//! A sign-in is compared with Argon2 alone, a signed-in user's call with the same call of the service. The end compares
//! the refusals of wrong passwords and of unknown addresses: a difference in time would reveal which addresses have accounts.

#![forbid(unsafe_code)]

use std::{
    hint::black_box,
    path::Path,
    time::{Duration, Instant},
};

use argon2::Argon2;
use criterion::Criterion;
use townsquare::{Uuid, auth::NewCredential, blocking::Client};
use townsquare_benches::{sized, spaces::database_of};
use townsquare_tests::temp_dir;

const EMAIL: &str = "ann@town.example";
const PASSWORD: &str = "correct horse battery";

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let folder = temp_dir();
    let file = folder.path().join("town.db");
    let (client, ids) = database_of(&file, sized(100_000, 100));
    client.auth().sign_up(EMAIL, PASSWORD).expect("an account");
    let session = client.auth().sign_in(EMAIL, PASSWORD).expect("a session");
    let (user, service) = (client.as_user(&session.access_token).expect("a handle"), client.as_service());

    let mut group = criterion.benchmark_group("auth/sign_in");
    group.sample_size(sized(30, 10));
    // `as_service` keeps its caller, as in a server that signs its users in.
    group.bench_function("townsquare", |bencher| {
        bencher.iter(|| service.auth().sign_in(EMAIL, PASSWORD).expect("right"));
    });
    group.bench_function("floor: Argon2", |bencher| bencher.iter(argon2));
    group.finish();

    let mut group = criterion.benchmark_group("auth/get_space");
    for (name, caller) in [("a user", &user), ("the service", &service)] {
        let mut turn = ids.iter().step_by(7).cycle();
        group.bench_function(name, |bencher| {
            bencher.iter(|| caller.spaces().get_space(*turn.next().expect("endless")).expect("a space"));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("auth/as_user");
    group.bench_function("a token", |bencher| bencher.iter(|| client.as_user(&session.access_token).expect("stands")));
    group.finish();
    criterion.final_summary();
    compare_failures(&client, &file);
    client.close();
}

fn argon2() -> [u8; 32] {
    let mut hash = [0; 32];
    Argon2::default()
        .hash_password_into(black_box(PASSWORD).as_bytes(), b"salt of 16 bytes", &mut hash)
        .expect("hashes");
    hash
}

/// Compares the refusals of sign-ins with wrong passwords: for accounts, for accounts with imported bcrypt hashes, and for unknown
/// addresses. Without and with imported hashes in the database, because a refusal takes the time of both kinds of hash then.
fn compare_failures(client: &Client, file: &Path) {
    let addresses = sized(40, 2);
    for number in 0..addresses {
        client.auth().sign_up(&address("known", number), PASSWORD).expect("an account");
    }
    measure_failures(client, "no imported hash", &["known", "unknown"], addresses);
    // Users without passwords, as of a database that was used without this library.
    let raw = rusqlite::Connection::open(file).expect("opens");
    for number in 0..addresses {
        let values = [Uuid::new_v4().to_string(), address("imported", number)];
        raw.execute("INSERT INTO users (id, email) VALUES (?1, ?2)", values).expect("a user");
    }
    let hash = bcrypt::hash_with_salt(PASSWORD, 10, [7; 16]).expect("a hash").to_string();
    let imported = (0..addresses).map(|number| NewCredential::of_address(address("imported", number), &hash)).collect();
    client.as_service().auth().import_credentials(imported).expect("imported");
    measure_failures(client, "imported hashes", &["known", "imported", "unknown"], addresses);
}

fn address(kind: &str, number: usize) -> String {
    format!("{kind}-{number}@town.example")
}

/// Signs in with wrong passwords for the kinds of addresses in turns, below the rate limit of each address.
#[allow(clippy::print_stdout, reason = "the figures are the answer")]
fn measure_failures(client: &Client, database: &str, kinds: &[&str], addresses: usize) {
    let mut times = vec![Vec::new(); kinds.len()];
    for _ in 0..sized(4, 1) {
        for number in 0..addresses {
            for (kind, times) in kinds.iter().zip(&mut times) {
                let started = Instant::now();
                client.auth().sign_in(&address(kind, number), "a wrong password").expect_err("wrong");
                times.push(started.elapsed());
            }
        }
    }
    for (kind, mut times) in kinds.iter().zip(times) {
        times.sort_unstable();
        let at = |part: usize| milliseconds(times[(times.len() - 1) * part / 100]);
        println!(
            "{database}, {kind}: p10 {:.2} ms, p50 {:.2} ms, p90 {:.2} ms of {}",
            at(10),
            at(50),
            at(90),
            times.len()
        );
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
