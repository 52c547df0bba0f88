//! Databases of any size, filled by plain SQL.
//!
//! Invariant: a size changes how many users, spaces and files there are, and nothing else. A user has 10 spaces, half of them public;
//! a space has 10 fidgets and most have a file. Ids are hashes, so that neighbours in an index are not neighbours in the table.

use townsquare_tests::{postgres::Server, raw_sql::RawConnection};

/// Spaces of a user, and fidgets of a space.
pub(crate) const EACH: usize = 10;

/// The password of every user.
pub(crate) const PASSWORD: &str = "correct horse";

/// The SQL of a row's id: `kind` is a word, `number` an expression.
fn id(kind: &str, number: &str) -> String {
    format!("md5('{kind} ' || ({number}))::uuid")
}

/// The address of the user with a number.
pub(crate) fn address(number: usize) -> String {
    format!("user-{number}@town.example")
}

/// Fills the tables of an open database: `users` users and what belongs to them. Returns the seconds that it took.
pub(crate) fn fill(server: &Server, database: &str, users: usize, password_hash: &str) -> f64 {
    let started = std::time::Instant::now();
    let raw = server.administrator(database);
    // Neither the triggers of the feed nor foreign keys.
    raw.run("SET session_replication_role = replica; SET synchronous_commit = off; SET maintenance_work_mem = '256MB'");
    without_indexes(&raw, || {
        fill_accounts(&raw, users, password_hash);
        fill_spaces(&raw, users);
        fill_communities(&raw, users);
        fill_files(&raw, users);
    });
    raw.run("RESET session_replication_role");
    fill_log(&raw, users);
    raw.run("VACUUM ANALYZE");
    raw.run("CHECKPOINT");
    started.elapsed().as_secs_f64()
}

/// Runs `work` while the tables have no indexes but those of their constraints.
fn without_indexes(raw: &RawConnection, work: impl FnOnce()) {
    let indexes = raw.rows(
        "SELECT indexdef, format('DROP INDEX %I.%I', schemaname, indexname) FROM pg_indexes
         WHERE schemaname IN ('public', 'townsquare') AND NOT EXISTS (SELECT FROM pg_constraint
             WHERE conindid = format('%I.%I', schemaname, indexname)::regclass)",
    );
    let column = |number: usize| indexes.iter().filter_map(move |row| row.get(number)?.clone());
    column(1).for_each(|drop| raw.run(&drop));
    work();
    column(0).for_each(|create| raw.run(&create));
}

fn fill_accounts(raw: &RawConnection, users: usize, password_hash: &str) {
    let user = id("user", "n");
    let session = id("session", "n");
    let hash = |kind: &str| format!("md5('{kind} a' || n) || md5('{kind} b' || n)");
    let each = |share: usize| format!("FROM generate_series(0, {}) AS n", (users / share).max(1) - 1);
    let inserts = [
        format!(
            "INSERT INTO users SELECT {user}, 'user-' || n || '@town.example', now() - n * interval '1 s', now() {}",
            each(1)
        ),
        format!("INSERT INTO townsquare.credentials SELECT {user}, '{password_hash}', now() {}", each(1)),
        format!(
            "INSERT INTO townsquare.sessions SELECT {}, {session}, {user}, {}, now(), now() + interval '1 day',
                 now() + interval '30 days' {}",
            hash("access"),
            hash("refresh"),
            each(1)
        ),
        format!("INSERT INTO townsquare.spent_tokens SELECT {}, {session}, now(), 'a' {}", hash("spent"), each(1)),
        format!("INSERT INTO townsquare.failures SELECT {}, 1, now(), now() {}", hash("failure"), each(1)),
        format!("INSERT INTO townsquare.known_clients SELECT {}, {user}, now() {}", hash("client"), each(1)),
        format!("INSERT INTO townsquare.identities SELECT {}, {user}, now() {}", hash("key"), each(1)),
        format!(
            "INSERT INTO townsquare.verified_emails SELECT {user}, 'user-' || n || '@town.example', now() {}",
            each(2)
        ),
        format!(
            "INSERT INTO townsquare.mailed_tokens SELECT {}, 'recovery', {user}, 'user-' || n || '@town.example',
                 now() + interval '1 h' {}",
            hash("mail"),
            each(10)
        ),
    ];
    inserts.iter().for_each(|insert| raw.run(insert));
}

fn fill_spaces(raw: &RawConnection, users: usize) {
    let spaces = users * EACH;
    let (space, owner, of_fidget) =
        (id("space", "n"), id("user", &format!("n % {users}")), id("space", &format!("m / {EACH}")));
    raw.run(&format!(
        "INSERT INTO spaces SELECT {space}, 'Space ' || n, 'What it is about, in a few words', {owner},
             (n / {users}) % 2 = 0, now() - n * interval '1 s', now() - n * interval '1 s'
         FROM generate_series(0, {}) AS n",
        spaces - 1
    ));
    // Several statements, so that a part of the table is not in one long transaction.
    let step = 1_000_000;
    for first in (0..spaces * EACH).step_by(step) {
        raw.run(&format!(
            "INSERT INTO fidgets SELECT {}, {of_fidget}, 'clock', jsonb_build_object('zone', 'UTC', 'number', m,
                 'text', 'A setting of the fidget, in a few words'), '{{\"x\": 1, \"y\": 2}}',
                 now() - m * interval '1 ms', now() FROM generate_series({first}, {}) AS m",
            id("fidget", "m"),
            (first + step).min(spaces * EACH) - 1
        ));
    }
    raw.run(&format!(
        "INSERT INTO \"spaceRegistrations\" SELECT {space}, n, 'Space ' || n, 'profile', md5('key ' || n), 'signature', now()
         FROM generate_series(0, {}) AS n",
        spaces - 1
    ));
    raw.run(&format!(
        "INSERT INTO townsquare.former_spaces SELECT {} FROM generate_series(0, {}) AS n",
        id("former", "n"),
        spaces / 10
    ));
}

/// A community with a domain for each tenth user; the user has linked its key.
fn fill_communities(raw: &RawConnection, users: usize) {
    let communities = users / EACH;
    raw.run(&format!(
        "INSERT INTO community_configs SELECT {}, 'community-' || n, now(), '{{\"a\": 1}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}',
             ARRAY[md5('key a' || n) || md5('key b' || n)], true, true, NULL FROM generate_series(0, {last}) AS n;
         INSERT INTO community_domains SELECT {}, 'community-' || n, 'town-' || n || '.example', 'custom', now(), now()
         FROM generate_series(0, {last}) AS n",
        id("community", "n"),
        id("domain", "n"),
        last = communities - 1
    ));
}

/// A file in eight of ten spaces, a private file of each user, and a public file for each user. All are in the database.
fn fill_files(raw: &RawConnection, users: usize) {
    let columns = "bucket, path, access, space_id, first_segment, owner_id, size, content_type, cache_control, etag,
        is_inline, updated_at";
    let rest = "5, 'text/plain', 3600, md5('etag ' || n), true, now()";
    let each = |last: usize| format!("FROM generate_series(0, {}) AS n", last - 1);
    let (space, owner, user) = (id("space", "n"), id("user", &format!("n % {users}")), id("user", "n"));
    for (file, rows) in [
        (
            format!("'spaces', {space} || '/page.txt', 'spaces', {space}, {space}::text, {owner}"),
            each(users * EACH * 8 / 10),
        ),
        (format!("'private', {user} || '/note.txt', 'private', NULL, {user}::text, {user}"), each(users)),
        (format!("'assets', md5('asset ' || n) || '/a.txt', 'public', NULL, md5('asset ' || n), {user}"), each(users)),
    ] {
        raw.run(&format!("INSERT INTO townsquare.files ({columns}) SELECT {file}, {rest} {rows}"));
    }
    raw.run("INSERT INTO townsquare.file_contents SELECT bucket, path, 'hello' FROM townsquare.files");
}

/// Writes entries of the change log, as many as there are spaces. The triggers would take minutes.
fn fill_log(raw: &RawConnection, users: usize) {
    raw.run(&format!(
        "INSERT INTO townsquare.changes (id, table_name, kind, old_row, new_row, old_context, new_context)
         SELECT nextval('townsquare.changes_id'), 'fidgets', 'update', row_to_json(fidgets), row_to_json(fidgets), context.both,
             context.both
         FROM fidgets, LATERAL (SELECT townsquare.context_of(owner_id, is_public) AS both FROM spaces
             WHERE spaces.id = fidgets.space_id) AS context
         LIMIT {}",
        users * EACH
    ));
}

/// A space with its number, a fidget of it, and a file of its owner.
pub(crate) struct Sample {
    pub(crate) number: usize,
    pub(crate) space: townsquare::Uuid,
    pub(crate) fidget: townsquare::Uuid,
    pub(crate) owner: townsquare::Uuid,
}

/// Returns `count` spaces that are public (an even share of all), or those of the user with the number `user`.
pub(crate) fn samples(raw: &RawConnection, users: usize, count: usize, user: Option<usize>) -> Vec<Sample> {
    let half = users * EACH / 2;
    let number = match user {
        Some(user) => format!("{user} + k * {users}"),
        // The even tenths of the numbers are public, and have files up to eight tenths.
        None => format!(
            "(k::bigint * 7919 % {half}) % {users} + {users} * 2 * (((k::bigint * 7919) % {half}) / {users} % 4)"
        ),
    };
    let sql = format!(
        "SELECT n::text, {}::text, {}::text, {}::text FROM (SELECT {number} AS n FROM generate_series(0, {}) AS k) AS chosen",
        id("space", "n"),
        id("fidget", &format!("n * {EACH}")),
        id("user", &format!("n % {users}")),
        count - 1
    );
    let parsed = |row: Vec<Option<String>>| {
        let column = |place: usize| row[place].clone().expect("not NULL");
        Sample {
            number: column(0).parse().expect("a number"),
            space: column(1).parse().expect("a UUID"),
            fidget: column(2).parse().expect("a UUID"),
            owner: column(3).parse().expect("a UUID"),
        }
    };
    raw.rows(&sql).into_iter().map(parsed).collect()
}
