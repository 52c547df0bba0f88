//! The conditions of the filter oracle: each as a filter of the feed and as SQL.

use townsquare_tests::{raw_sql::quoted, test_database::Engine};

use super::rows::{ColumnValues, Kind, TableRows};

/// A condition on a column.
pub(super) struct Condition {
    pub(super) column: &'static str,
    /// The filter of a subscription.
    pub(super) filter: String,
    /// The same condition in the engine's SQL.
    pub(super) sql: String,
}

/// A value: as filters write it, and as SQL.
type Written = (String, String);

const COMPARISONS: [(&str, &str); 6] =
    [("eq", "="), ("neq", "<>"), ("lt", "<"), ("lte", "<="), ("gt", ">"), ("gte", ">=")];

/// Every operator on every column.
pub(super) fn conditions(engine: Engine, rows: &TableRows) -> Vec<Condition> {
    rows.columns.iter().flat_map(|column| of_column(engine, column)).collect()
}

fn of_column(engine: Engine, column: &ColumnValues) -> Vec<Condition> {
    let name = format!("\"{}\"", column.name);
    // Filters compare text by code point, which PostgreSQL's default collation need not do.
    let compared = if column.kind == Kind::Text && engine == Engine::Postgres {
        format!("{name} COLLATE \"C\"")
    } else {
        name.clone()
    };
    let condition = |operator: &str, value: &str, sql: String| Condition {
        column: column.name,
        filter: format!("{}={operator}.{value}", column.name),
        sql,
    };
    let mut found = vec![condition("is", "null", format!("{name} IS NULL"))];
    if column.kind == Kind::Boolean {
        let is = |value: &str| condition("is", value, format!("{name} IS {value}"));
        found.extend(["true", "false"].map(is));
    }
    let values = written_values(column);
    for (operator, sql) in COMPARISONS {
        let compare = |(value, literal): &Written| condition(operator, value, format!("{compared} {sql} {literal}"));
        found.extend(values.iter().map(compare));
    }
    if let [first, .., last] = &values[..] {
        for list in [vec![first], vec![last], vec![last, first, last], vec![]] {
            let (items, literals): (Vec<_>, Vec<_>) = list.into_iter().cloned().unzip();
            // Standard SQL has no empty list.
            let sql =
                if literals.is_empty() { "1 = 0".to_owned() } else { format!("{name} IN ({})", literals.join(", ")) };
            found.push(condition("in", &format!("({})", items.join(",")), sql));
        }
    }
    if column.kind == Kind::Text {
        for (pattern, like) in column.values.into_iter().flat_map(patterns) {
            let (like, upper) = (quoted(&like), in_quotes(&pattern.to_ascii_uppercase()));
            found.push(condition("like", &in_quotes(&pattern), format!("{name} LIKE {like} ESCAPE '\\'")));
            found.push(condition("ilike", &upper, format!("lower({name}) LIKE lower({like}) ESCAPE '\\'")));
        }
    }
    found
}

/// Both values of a column and one between them, in other forms than the database's.
fn written_values(column: &ColumnValues) -> Vec<Written> {
    let [one, two] = column.values;
    match column.kind {
        Kind::Uuid => {
            let between = "77777777-7777-4777-8777-777777777777";
            let forms = [one.to_uppercase(), two.replace('-', ""), format!("{{{between}}}")];
            forms.into_iter().zip([one, two, between].map(quoted)).collect()
        }
        Kind::Text => [(in_quotes(one), one), (in_quotes(two), two), ("Z".to_owned(), "Z")]
            .map(|(written, value)| (written, quoted(value)))
            .into(),
        Kind::Integer => [one, two, "7"]
            .map(|value| {
                let digits = value.trim_start_matches('-');
                let sign = if digits == value { "+" } else { "-" };
                (format!("{sign}00{digits}"), value.to_owned())
            })
            .into(),
        Kind::Boolean => [one, two].map(|value| (value.to_owned(), value.to_owned())).into(),
        Kind::Time => [
            ("2026-01-02T05:04:05.678901+02:00", one),
            ("2026-01-01T22:04:05.6-05:00", two),
            ("2026-01-02T03:04:05.65Z", "2026-01-02T03:04:05.650000Z"),
        ]
        .map(|(written, value)| (written.to_owned(), quoted(value)))
        .into(),
        Kind::Json | Kind::Texts => Vec::new(),
    }
}

/// Patterns for a text: as the feed reads them, and as SQL's LIKE reads them with a backslash as its escape character.
fn patterns(text: &str) -> [Written; 3] {
    let escaped = |text: &str, wildcards: &[char]| -> String {
        text.chars().flat_map(|one| wildcards.contains(&one).then_some('\\').into_iter().chain([one])).collect()
    };
    let both = |text: &str| (escaped(text, &['%', '_', '*', '\\']), escaped(text, &['%', '_', '\\']));
    let (first, rest) = text.split_at(1);
    let ((first, sql_first), (rest, sql_rest)) = (both(first), both(rest));
    [
        (format!("{first}{rest}"), format!("{sql_first}{sql_rest}")),
        (format!("{first}*"), format!("{sql_first}%")),
        (format!("%_{rest}"), format!("%_{sql_rest}")),
    ]
}

/// A value in double quotes, in which every character may stand.
fn in_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
