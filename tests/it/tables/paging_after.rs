//! Pages of public spaces after a space (DESIGN 3): the order of offset paging, stable under concurrent writes.

use std::{
    collections::{BTreeSet, HashSet},
    future::{Future, poll_fn},
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};

use townsquare::{
    Config, Error, ErrorKind, Uuid,
    blocking::{Client, wait},
    spaces::{PublicSpace, SpacePatch},
};
use townsquare_tests::{
    Rng, on_both_engines,
    raw_sql::RawConnection,
    test_database::{Engine, TestDatabase},
};

fn ids(spaces: &[PublicSpace]) -> Vec<Uuid> {
    spaces.iter().map(|space| space.id).collect()
}

/// All public spaces, by offset.
fn all(db: &TestDatabase) -> Vec<Uuid> {
    ids(&db.client.spaces().get_public_spaces(1_000, 0).expect("a page"))
}

/// All public spaces, by pages after the last space. `between` runs before each further page.
fn paged(client: &Client, size: u32, mut between: impl FnMut(&PublicSpace)) -> Vec<Uuid> {
    let mut page = client.spaces().get_public_spaces(size, 0).expect("the first page");
    let mut seen = ids(&page);
    while let Some(last) = page.last() {
        between(last);
        page = client.spaces().get_public_spaces_after(size, last).expect("a further page");
        assert!(page.len() <= size as usize);
        seen.extend(ids(&page));
    }
    seen
}

/// Inserts public spaces by plain SQL: some without `created_at`, some at the Unix epoch, some at equal times.
fn scatter(db: &TestDatabase, count: u128) {
    let times =
        ["NULL", "'1970-01-01T00:00:00.000000Z'", "'2020-01-01T00:00:00.000001Z'", "'2020-01-01T00:00:00.000002Z'"];
    let row = |number: u128| {
        let time = times.get(usize::try_from(number % 5).expect("small")).copied();
        let time = time.map_or_else(|| format!("'2021-01-01T00:00:{:02}.000000Z'", number % 60), str::to_owned);
        // A multiplication by an odd number scatters the ids.
        format!(
            "('{}', 'x', true, {time})",
            Uuid::from_u128((number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
        )
    };
    let rows: Vec<_> = (0..count).map(row).collect();
    db.raw.run(&format!("INSERT INTO spaces (id, name, is_public, created_at) VALUES {}", rows.join(", ")));
}

#[track_caller]
fn assert_invalid<T>(result: Result<T, Error>, message: &str) {
    let error = result.map(drop).expect_err(message);
    assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, None), "{error}");
    assert_eq!(error.to_string(), format!("Get public spaces failed: {message}"));
}

fn addresses_are_hidden_after_a_space_too(engine: Engine) {
    let Some(db) = TestDatabase::with(engine, Config::hide_owner_email) else { return };
    let owner = db.user();
    let made: Vec<_> = (0..3).map(|_| db.public_space(owner, "x").id).collect();
    let after = db.client.spaces().get_public_spaces_after(10, all(&db)[0]).expect("a page");
    assert_eq!(after.len(), made.len() - 1);
    assert!(after.iter().all(|space| space.owner.as_ref().is_some_and(|owner| owner.email.is_none())));
}

#[test]
fn addresses_are_hidden_after_a_space_too_in_sqlite() {
    addresses_are_hidden_after_a_space_too(Engine::Sqlite);
}

#[test]
fn addresses_are_hidden_after_a_space_too_in_postgres() {
    addresses_are_hidden_after_a_space_too(Engine::Postgres);
}

on_both_engines! {
    fn pages_after_a_space_have_the_order_of_offset_paging(db: &TestDatabase) {
        scatter(db, 97);
        let expected = all(db);
        assert_eq!(expected.len(), 97);
        for size in [1, 2, 7, 50, 97, 1_000] {
            assert_eq!(paged(&db.client, size, |_| {}), expected, "pages of {size}");
            let iterated = db.client.spaces().iter_public_spaces(size);
            assert_eq!(ids(&iterated.map(|space| space.expect("a space")).collect::<Vec<_>>()), expected, "{size}");
        }
        // By id, from every row.
        for (index, id) in expected.iter().enumerate() {
            let page = db.client.spaces().get_public_spaces_after(3, *id).expect("a page");
            assert_eq!(ids(&page), expected[index + 1..expected.len().min(index + 4)]);
        }
        let page = db.client.spaces().get_public_spaces(2, 0).expect("a page");
        let next = db.client.spaces().get_public_spaces_after(1, page[1].cursor()).expect("a page");
        assert_eq!(ids(&next), expected[2..3]);
    }

    fn pages_after_a_space_carry_the_owners(db: &TestDatabase) {
        let owner = Uuid::new_v4();
        db.user_of(owner, "mayor@town.example");
        let first = db.public_space(owner, "older");
        db.clock.advance(Duration::from_secs(1));
        let second = db.public_space(owner, "newer");
        let page = db.client.spaces().get_public_spaces_after(10, second.id).expect("a page");
        assert_eq!((page.len(), &page[0].space), (1, &first));
        let found = page[0].owner.as_ref().expect("an owner");
        assert_eq!((found.id, found.email.as_deref()), (owner, Some("mayor@town.example")));
    }

    /// Rows of all kinds of times appear and vanish between the pages, the row of the position among them.
    fn no_space_comes_twice_or_is_left_out_under_concurrent_writes(db: &TestDatabase) {
        scatter(db, 120);
        let (before, mut random) = (all(db), Rng::with_seed(7));
        let (mut deleted, mut number) = (BTreeSet::new(), 120);
        let seen = paged(&db.client, 9, |last| {
            let mut gone = vec![last.id];
            gone.extend((0..3).map(|_| before[random.usize(..before.len())]));
            for id in gone {
                if random.bool() {
                    db.raw.run(&format!("DELETE FROM spaces WHERE id = '{id}'"));
                } else {
                    db.service.spaces().update_space(id, SpacePatch::new().hidden()).map_or_else(drop, drop);
                }
                deleted.insert(id);
            }
            for _ in 0..3 {
                number += 1;
                let id = Uuid::from_u128(random.u128(..));
                let time = ["NULL", "'1970-01-01T00:00:00.000000Z'", "'2020-01-01T00:00:00.000002Z'"][number % 3];
                db.raw.run(&format!(
                    "INSERT INTO spaces (id, name, is_public, created_at) VALUES ('{id}', 'x', true, {time})"
                ));
            }
        });
        let distinct: HashSet<_> = seen.iter().collect();
        assert_eq!(distinct.len(), seen.len(), "no space comes twice");
        let kept: Vec<_> = before.iter().filter(|id| !deleted.contains(id)).collect();
        assert!(kept.len() > 30, "{}", kept.len());
        let listed: Vec<_> = seen.iter().filter(|id| before.contains(id) && !deleted.contains(id)).collect();
        assert_eq!(listed, kept, "none is left out");
    }

    fn the_position_of_a_space_outlives_the_space(db: &TestDatabase) {
        scatter(db, 25);
        let page = db.client.spaces().get_public_spaces(25, 0).expect("a page");
        let expected = ids(&page);
        for (index, space) in page.iter().enumerate() {
            db.raw.run(&format!("DELETE FROM spaces WHERE id = '{}'", space.id));
            let rest = db.client.spaces().get_public_spaces_after(100, space).expect("a page");
            assert_eq!(ids(&rest), expected[index + 1..], "after {space:?}");
        }
    }

    fn an_id_after_which_to_page_names_a_public_space(db: &TestDatabase) {
        let (owner, spaces) = (db.user(), db.client.spaces());
        let (shown, other) = (db.public_space(owner, "shown"), db.public_space(owner, "other"));
        let private = db.space();
        let missing = Uuid::new_v4();
        for id in [missing, private.id] {
            assert_invalid(spaces.get_public_spaces_after(1, id), &format!("after names no public space: {id}"));
        }
        // The owner and the service see the private space, and it is in no page of theirs either.
        let refused = db.service.spaces().get_public_spaces_after(1, private.id);
        assert_invalid(refused, &format!("after names no public space: {}", private.id));
        for id in [shown.id, other.id] {
            spaces.get_public_spaces_after(1, id).expect("a public space");
        }
        db.service.spaces().update_space(shown.id, SpacePatch::new().hidden()).expect("hidden");
        let refused = spaces.get_public_spaces_after(1, shown.id);
        assert_invalid(refused, &format!("after names no public space: {}", shown.id));
    }

    fn limits_and_page_sizes_are_1_to_1000(db: &TestDatabase) {
        let space = db.public_space(db.user(), "x");
        let spaces = db.client.spaces();
        for limit in [0, 1_001] {
            let message = format!("limit is 1 to 1000, not {limit}");
            assert_invalid(spaces.get_public_spaces_after(limit, space.id), &message);
            let mut iterated = spaces.iter_public_spaces(limit);
            assert_invalid(iterated.next().expect("an item"), &message);
            assert!(iterated.next().is_none(), "an error ends the stream");
        }
    }

    fn an_iterator_ends_with_the_client(db: &TestDatabase) {
        scatter(db, 5);
        let client = db.another();
        let mut spaces = client.spaces().iter_public_spaces(2);
        for _ in 0..2 {
            spaces.next().expect("an item").expect("a space");
        }
        client.close();
        let error = spaces.next().expect("an item").expect_err("closed");
        assert_eq!(error.kind(), ErrorKind::Closed);
        assert!(spaces.next().is_none());
        assert!(db.client.spaces().iter_public_spaces(5).next().is_some());
    }

    /// A future that is dropped before it is ready loses no space.
    fn a_stream_may_be_polled_by_any_future(db: &TestDatabase) {
        scatter(db, 10);
        let expected = all(db);
        let (mut spaces, mut seen) = (db.async_client().spaces().iter_public_spaces(3), Vec::new());
        loop {
            let ready = wait(poll_fn(|context| {
                // A new future for each poll.
                let next = pin!(spaces.next());
                next.poll(context)
            }));
            match ready {
                Some(space) => seen.push(space.expect("a space").id),
                None => break,
            }
        }
        assert_eq!(seen, expected);
    }
}

/// The calling thread may be one of an async runtime, which a long read would block.
#[test]
fn a_deep_offset_is_read_on_another_thread() {
    let db = TestDatabase::on(Engine::Sqlite).expect("SQLite is always there");
    db.public_space(db.user(), "x");
    // A read on another thread may be done before the first poll, but not every time.
    let is_pending = |offset| {
        (0..200).any(|_| {
            let mut page = Box::pin(db.async_client().spaces().get_public_spaces(1, offset));
            let first = page.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            first.is_pending() && wait(page).is_ok()
        })
    };
    assert_eq!([0, 1_000, 1_001, 1_000_000].map(is_pending), [false, false, true, true]);
}

/// The server's statistics show how many blocks of the index a page reads, and that it scans no table.
#[test]
fn postgres_seeks_to_the_position_in_the_index() {
    let Some(db) = TestDatabase::on(Engine::Postgres) else { return };
    // By a connection that has ended, and reported its statistics, before they are read.
    let filler = RawConnection::postgres(&db.url()).expect("the server runs");
    filler.run(
        "INSERT INTO spaces (name, is_public, created_at)
         SELECT 'x', true, timestamptz '2020-01-01' + number * interval '1 second' FROM generate_series(1, 20000) AS number",
    );
    filler.run("ANALYZE spaces");
    drop(filler);
    let after = db.client.spaces().get_public_spaces(1, 18_000).expect("a page").pop().expect("a space");
    db.client.close();
    let number = |sql: &str| db.raw.value(sql).parse::<i64>().expect("a number");
    // Entries that a condition of the index leaves out count as blocks only.
    let read = "SELECT idx_blks_read + idx_blks_hit FROM pg_statio_user_indexes
        WHERE indexrelname = 'spaces_is_public_created_at_idx'";
    let scans = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'spaces'";
    // A server process reports its statistics at the latest when it ends.
    db.end_server_processes();
    let before = (number(read), number(scans));
    let client = db.another();
    let page = client.spaces().get_public_spaces_after(20, &after).expect("a page");
    assert_eq!(page.len(), 20);
    client.close();
    db.end_server_processes();
    let after = (number(read), number(scans));
    // The whole index has about 80 blocks. The planner reads a few as well.
    assert!((1..12).contains(&(after.0 - before.0)), "{} blocks of the index read", after.0 - before.0);
    assert_eq!(after.1, before.1, "no scan of the table");
}
