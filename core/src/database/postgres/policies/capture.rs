//! The triggers that write the change log and the functions of the log: made from `capture.sql`, `change_log.sql` and the
//! columns of the tables.

use std::{collections::BTreeSet, fmt::Write as _};

use crate::{
    database::statement::{erased_image, replace_braces},
    model::{Column, ColumnType},
    policy::{Table, quoted},
};

/// A trigger that writes the change log: the end of its name, its event and its function.
type Trigger = (&'static str, &'static str, &'static str);

const ANY_CHANGE: &str = "AFTER INSERT OR UPDATE OR DELETE ON {} FOR EACH ROW";
const TRUNCATE: Trigger = ("_truncate", "BEFORE TRUNCATE ON {} FOR EACH STATEMENT", "capture_truncate");

/// The triggers of each table for which `capture_row` is not enough.
const OWN: [(&str, &[Trigger]); 5] = [
    ("spaces", &[("", ANY_CHANGE, "capture_space"), TRUNCATE]),
    (
        "fidgets",
        &[
            ("", "AFTER INSERT OR UPDATE ON {} FOR EACH ROW", "capture_fidget"),
            (
                "_delete",
                "AFTER DELETE ON {} REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT",
                "capture_deleted_fidgets",
            ),
            TRUNCATE,
        ],
    ),
    ("files", &[("", ANY_CHANGE, "capture_file"), TRUNCATE]),
    ("identities", &[("", "AFTER INSERT OR DELETE ON {} FOR EACH ROW", "capture_identity")]),
    (
        "sessions",
        &[
            ("", "AFTER INSERT ON {} FOR EACH ROW", "capture_session"),
            (
                "_update",
                "AFTER UPDATE OF access_hash ON {} FOR EACH ROW WHEN (OLD.access_hash <> NEW.access_hash)",
                "capture_session",
            ),
            // Deferred to the end of the transaction: a user who is deleted still gets what is deleted with them.
            ("_delete", "AFTER DELETE ON {} DEFERRABLE INITIALLY DEFERRED FOR EACH ROW", "capture_session"),
            TRUNCATE,
        ],
    ),
];

/// The tables whose changes `capture_row` writes.
fn row_tables() -> impl Iterator<Item = &'static str> {
    Table::ALL.map(Table::name).into_iter().filter(|name| OWN.iter().all(|(own, _)| own != name))
}

/// The tables with triggers that write the change log.
fn captured() -> impl Iterator<Item = &'static str> {
    row_tables().chain(OWN.map(|(name, _)| name))
}

/// The qualified name of a table with policies.
pub(super) fn table_name(table: Table) -> String {
    format!("{}.{}", table.schema(), quoted(table.name()))
}

/// The qualified name of a captured table.
fn qualified(name: &str) -> String {
    Table::from_name(name).map_or_else(|| format!("townsquare.{name}"), table_name)
}

/// The captured tables that have no policies.
pub(super) fn tables_without_policies() -> impl Iterator<Item = String> {
    captured().filter(|name| Table::from_name(name).is_none()).map(qualified)
}

/// The triggers of a table that write the change log.
fn triggers_of(table: &str) -> &'static [Trigger] {
    let own = OWN.iter().find(|(name, _)| qualified(name) == table);
    own.map_or(&[("", ANY_CHANGE, "capture_row"), TRUNCATE], |(_, triggers)| triggers)
}

/// The names of these triggers, by the qualified names of their tables.
pub(super) fn trigger_names() -> impl Iterator<Item = (String, BTreeSet<String>)> {
    captured().map(qualified).map(|table| {
        let names = triggers_of(&table).iter().map(|(suffix, ..)| format!("townsquare_capture{suffix}")).collect();
        (table, names)
    })
}

/// The script that replaces the triggers of a table which write the change log.
pub(super) fn triggers_script(table: &str) -> String {
    let mut sql = format!(
        "DO $$ DECLARE own NAME; BEGIN
            FOR own IN SELECT tgname FROM pg_catalog.pg_trigger
                WHERE tgrelid = '{table}'::regclass AND tgname LIKE 'townsquare\\_capture%' LOOP
                EXECUTE format('DROP TRIGGER %I ON {table}', own);
            END LOOP;
         END $$;\n"
    );
    for (suffix, event, function) in triggers_of(table) {
        let (event, kind) =
            (event.replace("{}", table), if event.contains("DEFERRABLE") { "CONSTRAINT TRIGGER" } else { "TRIGGER" });
        // Writing to a String cannot fail.
        let _ =
            writeln!(sql, "CREATE {kind} townsquare_capture{suffix} {event} EXECUTE FUNCTION townsquare.{function}();");
    }
    let _ = writeln!(sql, "SELECT townsquare.switch_triggers('{table}');");
    sql
}

/// The script of the functions.
pub(super) fn functions() -> String {
    expand(concat!(include_str!("capture.sql"), "\n", include_str!("change_log.sql")))
}

/// Puts SQL in place of what stands in braces.
fn expand(template: &str) -> String {
    replace_braces(template, |placeholder| {
        let words: Vec<&str> = placeholder.split(' ').collect();
        match *words.as_slice() {
            ["only", "rows"] => only(row_tables()),
            ["only", "captured"] => only(captured()),
            ["only", table] => only([table].into_iter()),
            ["drop", "large", "rows"] => row_tables().map(drop_large_if).collect(),
            ["drop", "large", table] => drop_large(table),
            ["image", table, row] => image(table, row),
            ["captured", "tables"] => captured().map(qualified).collect::<Vec<_>>().join(", "),
            ["captured", "names"] => names(captured()),
            ["erased", table, image] => erased_image("json_build_object", table, image),
            // The statement fails.
            _ => format!("{{{placeholder}}}"),
        }
    })
}

/// The qualified names of tables as a list of texts.
fn names<'a>(tables: impl Iterator<Item = &'a str>) -> String {
    tables.map(|name| format!("'{}'", qualified(name))).collect::<Vec<_>>().join(", ")
}

/// The statement of a trigger function that refuses every table but these.
fn only<'a>(tables: impl Iterator<Item = &'a str>) -> String {
    format!(
        "IF TG_RELID <> ALL (ARRAY[{}]::regclass[]) THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;",
        names(tables)
    )
}

/// The statements that leave the large columns of a table out of the old image of an update that did not change them.
fn drop_large(name: &str) -> String {
    let columns = Table::from_name(name).into_iter().flat_map(Table::columns).filter(|column| column.is_large);
    let drop = |Column { name, column_type, .. }: &Column| {
        let (column, size) =
            (quoted(name), if *column_type == ColumnType::Text { "octet_length" } else { "pg_column_size" });
        format!(
            "IF {size}(OLD.{column}) > 1000 AND OLD.{column}::text = NEW.{column}::text THEN
            OLD.{column} := NULL;
            unchanged := unchanged || '{column}'::text;
        END IF;
        "
        )
    };
    columns.map(drop).collect()
}

/// The statements of [`drop_large`], for a function of several tables.
fn drop_large_if(name: &str) -> String {
    let statements = drop_large(name);
    if statements.is_empty() {
        return statements;
    }
    format!("IF TG_RELID = '{}'::regclass THEN\n        {statements}END IF;\n        ", qualified(name))
}

/// The SQL of the image of a row with the columns of the feed alone.
fn image(name: &str, row: &str) -> String {
    let columns = Table::from_name(name).into_iter().flat_map(Table::columns);
    let columns = columns.map(|column| format!("'{}', {row}.{}", column.name, quoted(column.name)));
    format!("json_build_object({})", columns.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_triggers_and_nothing_in_braces_stays() {
        for table in Table::ALL {
            assert!(triggers_script(&table_name(table)).contains("CREATE TRIGGER townsquare_capture "), "{table:?}");
        }
        assert_eq!(tables_without_policies().collect::<Vec<_>>(), ["townsquare.identities", "townsquare.sessions"]);
        assert!(!functions().contains(['{', '}']));
        assert_eq!(expand("a {no such} b"), "a {no such} b");
    }
}
