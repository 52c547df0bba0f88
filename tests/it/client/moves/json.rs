//! Moves and imports of JSON that PostgreSQL stores in another form. It is compared as a value.

use serde_json::Value;
use townsquare::rows::ImportOptions;

use super::*;

/// Numbers with several forms. PostgreSQL has no negative zero.
const NUMBERS: &str = r#"{"zero": [-0.0, -0, 0.0, -0e5, {"b": -0.0}], "form": [1.0, 1e2, 1E+2, 1e16, 5e-324, 18446744073709551615], "a": 1}"#;

/// The text of a fidget's config as the library reads it.
fn config_of(service: &Client, fidget: Uuid) -> String {
    service.fidgets().get_fidget(fidget).expect("a fidget").config.expect("a config").to_string()
}

#[test]
fn negative_zero_moves_between_the_engines_and_is_imported_again() {
    let Some(remote) = Remote::new() else { return };
    let town = Town::new();
    let space = town.service.spaces().create_space(NewSpace::named("numbers")).expect("created");
    let numbers: Value = serde_json::from_str(NUMBERS).expect("JSON");
    let fidget = NewFidget::of_type("clock").config(numbers);
    let fidget = town.service.fidgets().create_fidget(space.id, fidget).expect("created").id;
    assert!(config_of(&town.service, fidget).contains("-0.0"), "SQLite keeps it");
    move_to(&town.client, remote.config());

    let moved = Client::open(remote.config()).expect("opens");
    let service = moved.as_service();
    let found = config_of(&service, fidget);
    assert!(!found.contains("-0"), "{found}");
    let rows = town.service.export_rows(&["fidgets"]).expect("begun");
    let rows: Vec<_> = rows.map(|row| row.expect("exported").values).collect();
    assert!(rows.iter().any(|row| row["config"].to_string().contains("-0.0")), "{rows:?}");
    let report = service.import_rows("fidgets", rows, ImportOptions::new()).expect("imported");
    assert_eq!((report.inserted, report.unchanged), (0, 1), "the same values");
    let back = temp_dir();
    move_to(&moved, config(back.path()));
    let returned = Client::open(config(back.path())).expect("opens");
    assert_eq!(config_of(&returned.as_service(), fidget), found);
    returned.close();
    moved.close();
}
