//! The tests of `export` and `import`.

use std::fs;

use serde_json::{Value, json};
use townsquare_tests::test_database::{EmptyDatabase, Engine};

use crate::fixture::{CommandOutput, Fixture, run};

const ID: &str = "5f0d1c1e-0c7c-4a55-9d43-7f5a3c5a1b11";
const OTHER: &str = "6f0d1c1e-0c7c-4a55-9d43-7f5a3c5a1b12";
const TIME: &str = "2026-01-02T03:04:05.000000Z";
const HEADER: &str = "id,name,description,owner_id,is_public,created_at,updated_at";

/// A line of `spaces`.
fn line(id: &str, name: &str) -> String {
    json!({ "table": "spaces", "row": space(id, name) }).to_string()
}

fn space(id: &str, name: &str) -> Value {
    json!({
        "id": id, "name": name, "description": null, "owner_id": null, "is_public": true, "created_at": TIME, "updated_at": TIME
    })
}

fn import(town: &Fixture, arguments: &[&str], input: &str) -> CommandOutput {
    town.run_with_input(&[&["import"], arguments].concat(), input)
}

fn lines(town: &Fixture, folder: &str, arguments: &[&str]) -> Vec<Value> {
    town.run(&[&["export", "--data-dir", folder], arguments].concat()).json_lines()
}

/// A town without rows.
fn empty() -> Fixture {
    let town = Fixture::new();
    town.run(&["seed", "--users", "0", "--spaces", "0", "--fidgets", "0"]).succeeded();
    town
}

#[test]
fn an_export_of_all_tables_is_imported_into_a_new_database() {
    let town = Fixture::seeded();
    let exported = lines(&town, "town", &[]);
    let numbers = |table: &str| exported.iter().filter(|line| line["table"] == table).count();
    assert_eq!((numbers("users"), numbers("spaces"), numbers("fidgets"), exported.len()), (1, 4, 8, 13));
    let report = town.run(&["export", "rows.ndjson", "--json"]).json();
    assert_eq!((&report["rows"]["fidgets"], &report["rows"]["community_configs"]), (&8.into(), &0.into()));
    let report = town.run(&["import", "rows.ndjson", "--data-dir", "copy", "--json"]).json();
    assert_eq!(report["rows"]["fidgets"], json!({ "inserted": 8, "unchanged": 0 }));
    assert_eq!(lines(&town, "copy", &[]), exported);
    let report = town.run(&["import", "rows.ndjson", "--data-dir", "copy", "--json"]).json();
    assert_eq!(report["rows"]["fidgets"], json!({ "inserted": 0, "unchanged": 8 }));
    // By the standard input, and as a table.
    let text = fs::read_to_string(town.path("rows.ndjson")).expect("a file");
    let shown = import(&town, &["-", "--data-dir", "third"], &text).succeeded().out;
    assert!(shown.contains("TABLE") && shown.contains("fidgets") && shown.contains('8'), "{shown}");
    assert_eq!(lines(&town, "third", &[]), exported);
}

#[test]
fn one_table_goes_by_csv_with_every_text() {
    let town = empty();
    let texts =
        ["", "\\", "\\\\x", "a\n\"b\",c\r\nd", " spaces ", "'; DROP TABLE spaces; --", "=1+1", "\u{9b}é🦀", "null"];
    let ids: Vec<_> = (0..texts.len()).map(|number| format!("5f0d1c1e-0c7c-4a55-9d43-7f5a3c5a1b{number:02}")).collect();
    let mut rows: Vec<_> = ids.iter().zip(texts).map(|(id, text)| space(id, text)).collect();
    for (row, text) in rows.iter_mut().zip(texts) {
        row["description"] = json!(text);
    }
    rows[0]["description"] = Value::Null;
    let input: Vec<_> = rows.iter().map(Value::to_string).collect();
    import(&town, &["-", "--table", "spaces"], &input.join("\n")).succeeded();
    town.run(&["export", "spaces.csv", "--table", "spaces"]).succeeded();
    let csv = fs::read_to_string(town.path("spaces.csv")).expect("a file");
    assert!(csv.starts_with(&format!("{HEADER}\n{},\\,,,true,{TIME}", ids[0])), "{csv}");
    assert_eq!(town.run(&["export", "--table", "spaces", "--format", "csv"]).succeeded().out, csv);
    town.run(&["import", "spaces.csv", "--table", "spaces", "--data-dir", "copy"]).succeeded();
    assert_eq!(lines(&town, "copy", &[]), lines(&town, "town", &[]));
    // With a byte order mark, other ends of lines, and the columns in another order.
    let input = format!(
        "\u{feff}name,id,description,owner_id,is_public,created_at,updated_at\r\nx,{OTHER},,,false,{TIME},\r\n"
    );
    import(&town, &["-", "--format", "csv", "--table", "spaces"], &input).succeeded();
    let found = lines(&town, "town", &["--table", "spaces"]);
    let found = found.iter().find(|line| line["row"]["id"] == OTHER).expect("a row");
    assert_eq!((&found["row"]["updated_at"], &found["row"]["is_public"]), (&Value::Null, &false.into()));
}

#[test]
fn json_columns_of_csv_are_json_and_an_empty_cell_is_null() {
    let town = Fixture::seeded();
    let fidget = lines(&town, "town", &["--table", "fidgets"])[0]["row"].clone();
    let space = fidget["space_id"].as_str().expect("an id");
    let header = "id,space_id,type,config,position,created_at,updated_at";
    let input = format!(
        "{header}\n{ID},{space},x,\"{{\"\"a\"\":[1,\"\"é\"\"]}}\",null,{TIME},{TIME}\n{OTHER},{space},x,,\"\"\"text\"\"\",,\n"
    );
    import(&town, &["-", "--format", "csv", "--table", "fidgets"], &input).succeeded();
    let rows = lines(&town, "town", &["--table", "fidgets"]);
    let row = |id: &str| rows.iter().find(|line| line["row"]["id"] == id).expect("a row")["row"].clone();
    assert_eq!((&row(ID)["config"], row(ID).get("position")), (&json!({"a": [1, "é"]}), Some(&Value::Null)));
    assert_eq!((row(OTHER).get("config"), &row(OTHER)["position"]), (None, &json!("text")));
    town.run(&["export", "--table", "fidgets", "fidgets.csv"]).succeeded();
    town.run(&["import", "--table", "fidgets", "fidgets.csv", "--dry-run"]).succeeded();
    let bad = format!("{header}\n{ID},{space},x,{{a,null,{TIME},{TIME}\n");
    import(&town, &["-", "--format", "csv", "--table", "fidgets"], &bad).failed(2, "line 2: config is not JSON");
}

#[test]
fn a_bad_line_is_named_and_nothing_is_imported() {
    let town = empty();
    let good = line(ID, "good");
    let no_name = good.replace("\"name\":\"good\",", "");
    for (bad, part) in [
        ("{", "line 2: the line is not JSON"),
        ("[]", "line 2: "),
        ("7", "line 2: "),
        (r#"{"id": 1}"#, "line 2: it has no `table` and `row`"),
        (r#"{"row": {}}"#, "line 2: it has a `row` without a `table`"),
        (r#"{"table": "files", "row": {}}"#, "line 2: the table is one of"),
        (r#"{"table": 1, "row": {}}"#, "line 2: `table` is no text"),
        (r#"{"table": "spaces", "row": 1}"#, "line 2: "),
        (r#"{"table": "space_registrations", "row": {}}"#, "line 2: Required field is missing"),
        (r#"{"table": "spaces", "row": {}, "x": 1}"#, "line 2: it has a member \"x\""),
        (r#"{"table": "spaces", "row": {"id": 1, "id": 2}}"#, "line 2: \"id\" is there twice"),
        (r#"{"table": "spaces", "row": {"id": 1e400}}"#, "line 2: id has a number that no double holds"),
        (&*no_name.replace(ID, OTHER), "line 2: Required field is missing: name"),
        (&*line(OTHER, "a\0"), "line 2: name contains a NUL"),
        (&*line("x", "a"), "line 2: id is no UUID"),
        (&*line(ID, "again"), "line 2: an earlier line has the same id"),
        (&*line(&ID.to_uppercase(), "again"), "line 2: an earlier line has the same id"),
        (&*line(OTHER, "a").replace("\"is_public\":true", "\"is_public\":1"), "line 2: is_public is no boolean"),
        (&*line(OTHER, "a").replace("\"description\"", "\"colour\":1,\"description\""), "line 2: spaces has no column"),
        (
            &*line(OTHER, "a").replace("\"owner_id\":null", &format!("\"owner_id\":\"{ID}\"")),
            "line 2: owner_id: users has no row",
        ),
    ] {
        let ran = import(&town, &["-"], &format!("{good}\n{bad}\n"));
        let code = if part.contains("users has no row") { 1 } else { 2 };
        assert_eq!(ran.code, code, "{bad}: {ran:?}");
        ran.failed(code, part);
        assert_eq!(lines(&town, "town", &[]), Vec::<Value>::new(), "{bad}");
    }
    fs::write(town.path("bad"), [good.as_bytes(), b"\n{\"table\": \"\xff\"}\n"].concat()).expect("a file");
    town.run(&["import", "bad"]).failed(2, "line 2: byte 12 is not UTF-8");
    assert_eq!(lines(&town, "town", &[]), Vec::<Value>::new());
}

#[test]
fn a_fault_in_the_last_of_many_lines_leaves_nothing() {
    let town = empty();
    let mut text = String::new();
    for number in 0..2_000 {
        text.push_str(&line(&format!("5f0d1c1e-0c7c-4a55-9d43-7f5a3c5a{number:04}"), "x"));
        text.push('\n');
    }
    let source = town.file("rows.ndjson", &format!("{text}{}\n", line("x", "x")));
    town.run(&["import", &source]).failed(2, "line 2001: id is no UUID");
    assert_eq!(lines(&town, "town", &[]).len(), 0);
    let source = town.file("rows.ndjson", &text);
    town.run(&["import", &source]).succeeded();
    assert_eq!(lines(&town, "town", &[]).len(), 2_000);
}

#[test]
fn bad_csv_is_refused_by_line() {
    let town = empty();
    let row = format!("{ID},a,,,true,{TIME},{TIME}");
    for (input, part) in [
        (String::new(), "line 1: it has no header"),
        (format!("{HEADER},colour\n"), "line 1: spaces has no column \"colour\""),
        ("id,name\n".to_owned(), "line 1: the column description is missing"),
        (HEADER.replace("description", "name"), "line 1: the column name is there twice"),
        (format!("{HEADER}\n{row}\n{row}\n"), "line 3: an earlier line has the same id"),
        (format!("{HEADER}\n{row},x\n"), "line 2: it has 8 cells, and the header has 7"),
        (format!("{HEADER}\n{ID},a\n"), "line 2: it has 2 cells, and the header has 7"),
        (format!("{HEADER}\n{ID},\"a\nb\",,,true,{TIME},{TIME}\nx,a,,,true,{TIME},{TIME}\n"), "line 4: id is no UUID"),
        (format!("{HEADER}\n{ID},,,,true,{TIME},{TIME}\n"), "line 2: Required field is missing: name"),
        (format!("{HEADER}\n{ID},\\a,,,true,{TIME},{TIME}\n"), "line 2: name begins with one backslash"),
        (format!("{HEADER}\n{ID},a,,,yes,{TIME},{TIME}\n"), "line 2: is_public is neither true nor false"),
        (format!("{HEADER}\n{ID},\"a,,,true,{TIME},{TIME}\n"), "line 2: it has 2 cells"),
        // A file that was cut off.
        (
            format!("id,description,owner_id,is_public,created_at,updated_at,name\n{ID},,,true,{TIME},{TIME},\"a na"),
            "line 2: the file ends within a quoted cell",
        ),
    ] {
        import(&town, &["-", "--format", "csv", "--table", "spaces"], &input).failed(2, part);
        assert_eq!(lines(&town, "town", &[]), Vec::<Value>::new(), "{input}");
    }
    fs::write(town.path("bad.csv"), [HEADER.as_bytes(), b"\nx,\xff,,,true,,\n"].concat()).expect("a file");
    town.run(&["import", "bad.csv", "--table", "spaces"]).failed(2, "line 2: cell 2 is not UTF-8");
}

#[test]
fn a_line_without_an_end_takes_bounded_memory() {
    let town = empty();
    for (format, begin) in [("ndjson", "{\"table\":\"".to_owned()), ("csv", format!("{HEADER}\n{ID},\""))] {
        let source = town.file("long", &(begin + &"x".repeat(80 << 20)));
        let line = if format == "csv" { 2 } else { 1 };
        let ran = town.run(&["import", &source, "--format", format, "--table", "spaces"]);
        ran.failed(2, &format!("line {line}: it has more than 64 MiB"));
    }
}

#[test]
fn a_value_that_is_far_too_long_is_not_parsed() {
    let town = empty();
    let long = format!("[{}]", vec!["1"; 1_000_000].join(","));
    let text = line(ID, "a").replace("\"a\"", &long);
    import(&town, &["-"], &text).failed(2, "line 1: name has 2000001 bytes, and the most that is read is ");
    let text = format!("{HEADER}\n{ID},{},,,true,,\n", "x".repeat(7 << 20));
    import(&town, &["-", "--format", "csv", "--table", "spaces"], &text).failed(2, "line 2: name has 7340032 bytes");
    let members: Vec<_> = (0..101).map(|number| format!("\"{number}\":1")).collect();
    let text = format!("{{\"table\":\"spaces\",\"row\":{{{}}}}}", members.join(","));
    import(&town, &["-"], &text).failed(2, "line 1: an object has more than 100 members");
}

#[test]
fn a_problem_before_the_fault_that_ends_the_check_is_named() {
    let town = empty();
    let id = |number: usize| format!("5f0d1c1e-0c7c-4a55-9d43-7f5a3c5a{number:04}");
    import(&town, &["-"], &line(&id(3), "x")).succeeded();
    let mut all: Vec<_> = (1..=1_000).map(|number| line(&id(number), "x")).collect();
    all[2] = line(&id(3), "changed");
    // One that is no JSON, one that is not valid in a later call, and one in the same call.
    for (number, bad) in [(900, "{".to_owned()), (900, line("y", "x")), (5, line("y", "x")), (5, line(&id(4), "x"))] {
        let mut all = all.clone();
        all[number - 1] = bad;
        let text = all.join("\n");
        import(&town, &["-"], &text).failed(1, "line 3: there is a row of spaces with this id");
        let ran = import(&town, &["-", "--dry-run"], &text);
        assert!(ran.code == 2 && ran.out.contains("line 3: there is a row"), "{ran:?}");
        assert!(ran.err.contains(&format!("townsquare: line {number}: ")), "{ran:?}");
    }
    assert_eq!(lines(&town, "town", &[]).len(), 1);
}

#[test]
#[cfg(unix)]
fn a_pipe_is_no_file_to_import() {
    let town = empty();
    nix::unistd::mkfifo(&town.path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    town.run(&["import", "pipe"]).failed(2, "is no file");
}

#[test]
fn a_dry_run_changes_nothing_and_lists_the_lines_with_problems() {
    let town = empty();
    import(&town, &["-"], &line(ID, "good")).succeeded();
    let fidget = |id: &str, space: &str| {
        json!({ "table": "fidgets", "row": {
            "id": id, "space_id": space, "type": "x", "position": {}, "created_at": TIME, "updated_at": TIME
        }})
    };
    // A fidget of a space of the same file is no problem.
    let text = [line(ID, "changed"), line(OTHER, "new"), fidget(ID, OTHER).to_string()];
    let nobody = "00000000-0000-0000-0000-000000000000";
    let text = [text.join("\n"), fidget(OTHER, nobody).to_string()].join("\n\n");
    let ran = import(&town, &["-", "--dry-run", "--json"], &text);
    assert_eq!(ran.code, 3, "{ran:?}");
    let report: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(report["rows"]["fidgets"], json!({ "inserted": 1, "unchanged": 0 }), "{report}");
    let problems: Vec<_> =
        report["problems"].as_array().expect("a list").iter().map(|found| (&found["line"], &found["column"])).collect();
    assert_eq!(problems, [(&1.into(), &"name".into()), (&5.into(), &"space_id".into())]);
    let ran = import(&town, &["-", "--dry-run"], &text);
    assert!(ran.code == 3 && ran.out.contains("TO INSERT") && ran.out.contains("line 5: "), "{ran:?}");
    import(&town, &["-"], &text)
        .failed(1, "line 1: there is a row of spaces with this id, and it differs in name; 1 more");
    assert_eq!(lines(&town, "town", &[]).len(), 1);
    let text = text.lines().filter(|line| !line.contains("changed") && !line.contains(nobody));
    let text: Vec<_> = text.collect();
    import(&town, &["-", "--dry-run"], &text.join("\n")).succeeded();
    assert_eq!(lines(&town, "town", &[]).len(), 1);
    import(&town, &["-"], &text.join("\n")).succeeded();
    assert_eq!(lines(&town, "town", &[]).len(), 3);
}

#[test]
fn a_row_before_the_row_that_it_references_is_refused() {
    let town = Fixture::seeded();
    let mut exported: Vec<_> = lines(&town, "town", &[]).iter().map(Value::to_string).collect();
    exported.reverse();
    import(&town, &["-", "--data-dir", "copy"], &exported.join("\n")).failed(1, "line 1: space_id: spaces has no row");
    // Also if the row follows at once: the check must not take it for an earlier one.
    let fidget = exported.iter().find(|line| line.contains("fidgets")).expect("a fidget");
    let space = serde_json::from_str::<Value>(fidget).expect("JSON")["row"]["space_id"].clone();
    let space = exported.iter().find(|line| line.contains(&format!("\"id\":{space}"))).expect("a space");
    let space = space.replace(&exported_owner(space), "null");
    import(&town, &["-", "--data-dir", "copy"], &format!("{fidget}\n{space}")).failed(1, "line 1: space_id");
    import(&town, &["-", "--data-dir", "copy"], &format!("{space}\n{fidget}")).succeeded();
}

/// The owner of a line of `spaces`, as JSON text.
fn exported_owner(line: &str) -> String {
    serde_json::from_str::<Value>(line).expect("JSON")["row"]["owner_id"].to_string()
}

#[test]
fn bad_arguments_of_export_and_import_are_usage() {
    let town = Fixture::seeded();
    let source = town.file("rows", &line(ID, "x"));
    town.run(&["export", "--format", "csv"]).failed(2, "CSV has the rows of one table");
    town.run(&["export", "all.csv"]).failed(2, "CSV has the rows of one table");
    town.run(&["import", "--format", "csv", &source]).failed(2, "CSV has the rows of one table");
    town.run(&["import", "--table", "fidgets", &source])
        .failed(2, "line 1: it is a row of spaces, and --table is fidgets");
    town.run(&["export", "rows"]).failed(2, "rows exists, and this command replaces no file");
    town.run(&["export", "no/such/rows"]).failed(4, "no/such/rows");
    town.run(&["import", "missing"]).failed(4, "missing");
    town.run(&["import", "town"]).failed(2, "is no file");
    for bad in [
        &["export", "--table", "files"][..],
        &["import", "--table", "x", &source],
        &["export", "--format", "xml"],
        &["import"],
    ] {
        assert_eq!(town.run(bad).code, 2, "{bad:?}");
    }
    town.run(&["export", "--data-dir", "nothing"]).failed(4, "There is no database");
    town.run(&["import", "--dry-run", &source, "--data-dir", "nothing"]).failed(4, "There is no database");
    assert!(!town.path("nothing").exists() && !town.path("no").exists());
    let mut names = town.names("");
    names.sort_unstable();
    assert_eq!(names, ["rows", "town"], "no file is left behind");
}

#[test]
#[cfg(unix)]
fn an_export_replaces_no_link() {
    let town = Fixture::seeded();
    std::os::unix::fs::symlink(town.path("nowhere"), town.path("link")).expect("a link");
    town.run(&["export", "link"]).failed(2, "link exists, and this command replaces no file");
    let mut names = town.names("");
    names.sort_unstable();
    assert_eq!(names, ["link", "town"]);
}

#[test]
#[cfg(unix)]
fn an_interrupted_import_continues() {
    use nix::sys::signal::Signal;

    use crate::fixture::interrupted;

    let town = Fixture::new();
    town.run(&["seed", "--users", "0", "--spaces", "8000", "--fidgets", "0"]).succeeded();
    town.run(&["export", "rows"]).succeeded();
    town.run(&["seed", "--users", "0", "--spaces", "0", "--data-dir", "copy"]).succeeded();
    let start = || town.command(&["import", "rows", "--data-dir", "copy"]).spawn().expect("it starts");
    let log = town.path("copy/townsquare.db-wal");
    let has_begun = || fs::metadata(&log).is_ok_and(|file| file.len() > 100_000);
    let undo = || fs::remove_dir_all(town.path("copy")).expect("a folder");
    let output = interrupted(Signal::SIGINT, start, has_begun, undo);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.starts_with("townsquare: Interrupted\ntry: Run the same command again"), "{error}");
    let report = town.run(&["import", "rows", "--data-dir", "copy", "--json"]).json();
    let counts = &report["rows"]["spaces"];
    assert_eq!(counts["inserted"].as_u64().zip(counts["unchanged"].as_u64()).map(|(new, old)| new + old), Some(8_000));
    assert!(counts["unchanged"].as_u64() > Some(0), "{report}");
    assert_eq!(lines(&town, "copy", &[]), lines(&town, "town", &[]));
}

#[test]
fn a_reader_of_an_export_may_end_early() {
    use std::io::Read as _;

    let town = Fixture::new();
    town.run(&["seed", "--users", "0", "--spaces", "2000", "--fidgets", "0"]).succeeded();
    let mut process = town.command(&["export"]).spawn().expect("it starts");
    let mut first = [0; 10];
    process.stdout.take().expect("a pipe").read_exact(&mut first).expect("bytes");
    let output = process.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn rows_go_to_postgres_and_back() {
    let Some(database) = EmptyDatabase::on(Engine::Postgres) else { return };
    let town = Fixture::seeded();
    town.run(&["export", "rows"]).succeeded();
    let exported = lines(&town, "town", &[]);
    let on_postgres = |arguments: &[&str], input: &str| {
        let mut command = town.command(arguments);
        command.env_remove("TOWNSQUARE_DATA_DIR").env("TOWNSQUARE_DATABASE_URL", database.url());
        run(command, input)
    };
    on_postgres(&["import", "rows"], "").succeeded();
    assert_eq!(on_postgres(&["export"], "").json_lines(), exported);
    let again = on_postgres(&["import", "rows", "--json"], "").json();
    assert_eq!(again["rows"]["spaces"], json!({ "inserted": 0, "unchanged": 4 }));
    on_postgres(&["import", "-"], &format!("{}\n{{", line(ID, "x"))).failed(2, "line 2: ");
    let changed =
        on_postgres(&["import", "-", "--dry-run"], &exported[1].to_string().replace("\"name\":\"", "\"name\":\"x"));
    assert!(changed.code == 3 && changed.out.contains("line 1: "), "{changed:?}");
    on_postgres(&["export", "--table", "fidgets", "fidgets.csv"], "").succeeded();
    town.run(&["import", "--table", "fidgets", "fidgets.csv"]).succeeded();
    assert_eq!(on_postgres(&["export"], "").json_lines(), exported);
    assert_eq!(lines(&town, "town", &[]), exported);
}

#[test]
#[cfg(target_os = "linux")]
fn an_export_to_a_full_disk_is_worth_another_try() {
    let town = Fixture::seeded();
    let mut command = town.command(&["export", "-"]);
    command.stdout(fs::File::create("/dev/full").expect("a device that is full"));
    assert_eq!(command.status().expect("it runs").code(), Some(75));
}
