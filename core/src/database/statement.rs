//! A statement: an SQL template that is written once and rendered for each engine and kind of caller.
//!
//! Invariant: a template is a constant of this library. Values from outside are bound, never part of the text.
//!
//! A template contains:
//! - `$1 … $n`: the bound values;
//! - `townsquare.name`: a table of the library itself;
//! - `{spaces.select}`, or another action: the table's policy, as a condition. It is TRUE for the service. For other
//!   callers it also checks the caller's session, even if the policy allows every row;
//! - `{files.listed}`: the condition on the rows that a list shows, in the same way;
//! - `{spaces.monotonic_updated_at $3}`: `$3`, or one microsecond after the row's `updated_at` if `$3` is not later
//!   than it;
//! - `{users.has_address $3}`: the condition that the user has the address `$3`, which is in lower case;
//! - `{any $3}`: after a column, the condition that it equals one of the texts of the list `$3`;
//! - `{has_path townsquare.files $1 $3}`: the condition that the table has a row with the bucket `$1` and one of the paths
//!   of the list `$3`;
//! - `{uuid_of files.first_segment}`: the id that a text is, NULL if it is none, for a comparison that finds its row in an index;
//! - `{key_of files.first_segment}`: a text that is compared with an identity key, in the same way;
//! - `{owner_usage $1}`: after FROM, one row with the numbers of `spaces`, `files` and `bytes` that the user `$1` owns;
//! - `{space_fidgets $1 $2}`: after FROM, one row with the number of `fidgets` of the space `$1`, at most `$2`;
//! - `{erased old}`: what stays of a row image of SQLite's change log after its owner was deleted;
//! - the columns of a record of `model`:
//!
//! | template | SQL |
//! |---|---|
//! | `{spaces.columns}` | `spaces.id, spaces.name, …`: every column, qualified |
//! | `{spaces.row}` | `id, name, …`: every column |
//! | `{community_configs.readable}` | every column; NULL for a column that the caller may not read |
//! | `{spaces.new}` | `name, description, …`: the columns of the `new` struct |
//! | `{spaces.new $3}` | `$3 AS name, $4 AS description, …`: their values |
//! | `{fidgets.patch}` | `type, config, …`: the columns of the `patch` struct |
//! | `{fidgets.patch $3}` | `$3 AS type, $4 AS config, …`: their values |
//! | `{spaces.set $3}` | `name = CASE WHEN $3 THEN $4 ELSE name END, …`: the patch as assignments |

use std::{borrow::Cow, sync::OnceLock};

use super::page::Page;
use crate::policy::{Action, Caller, Column, Readers, SqlContext, Table, columns_of_record, listed, quoted, rule};

/// A statement of this library.
pub(crate) struct Statement {
    template: Template,
    pub(super) bound: Bound,
    /// Whether a replica may answer, which is behind the primary.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "SQLite has no replicas"))]
    pub(super) may_lag: bool,
    #[cfg(feature = "sqlite")]
    sqlite: OnceLock<RenderedSql>,
    #[cfg(feature = "postgres")]
    postgres: OnceLock<RenderedSql>,
}

/// What happens when the rows of a result take more memory than [`RESULT_MEMORY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// The statement bounds its result by itself.
    None,
    /// The result has the rows before; one row at least.
    Page,
    /// The statement fails with `TooLarge`.
    Whole,
}

/// The most memory that the rows of a list take.
pub(super) const RESULT_MEMORY: usize = 64 << 20;

enum Template {
    Text(Cow<'static, str>),
    Page(Page),
}

/// The SQL in which the engines differ.
pub(super) trait Dialect {
    /// The prefix of the library's own tables.
    const OWN_TABLES: &'static str;
    /// A public table after FROM, JOIN, INTO or UPDATE.
    fn table(name: &str) -> String;
    /// The condition that the session is one of the caller; `None` where the engine checks the session by itself.
    fn session_check(caller: &str) -> Option<String>;
    /// The parameter `$n`.
    fn parameter(number: usize) -> String;
    /// `time`, or one microsecond after the column `old` if `time` is not later than it.
    fn monotonic_updated_at(time: &str, old: &str) -> String;
    /// The condition that the user has linked one of the identity keys in the column.
    fn holds_key(user: &str, column: &str) -> String;
    /// The condition that the user has linked the identity key in the column.
    fn linked(user: &str, column: &str) -> String;
    /// The condition that a space has the id in a column, or that a new space may have it.
    fn claimable(id: &str) -> String;
    /// The condition that a column has the address, in any spelling if other programs store addresses as they are.
    fn has_address(column: &str, address: &str) -> String;
    /// What follows a column to say that it equals one of the texts of a list.
    fn any_of(list: &str) -> String;
    /// The condition that a table has a row with the bucket and one of the paths of a list.
    fn has_path(table: &str, bucket: &str, paths: &str) -> String;
    /// The id that the text in a column is, or NULL.
    fn uuid_of(column: &str) -> String;
    /// The text in a column, with the collation of identity keys.
    fn key_of(column: &str) -> String;
    /// What follows FROM to read one row with the columns `spaces`, `files` and `bytes`: what the user owns.
    fn owner_usage(user: &str) -> String;
    /// What follows FROM to read one row with the column `fidgets`: the number of fidgets of the space, at most `most`.
    fn space_fidgets(space: &str, most: &str) -> String;
    /// The template of a page.
    fn page(page: &Page) -> String {
        page.in_one_select()
    }
}

/// A statement's SQL for one engine.
pub(super) struct RenderedSql {
    /// For the service: each policy is TRUE.
    service: String,
    /// For other callers; `None` if the statement has no policy.
    restricted: Option<String>,
    /// Whether `restricted` has the caller's id as its last parameter.
    binds_caller: bool,
}

/// A statement's SQL for one caller.
#[derive(Clone, Copy)]
pub(super) struct CallerSql<'a> {
    pub(super) sql: &'a str,
    /// Whether the caller's id is bound after the values.
    pub(super) binds_caller: bool,
}

impl Statement {
    pub(crate) const fn new(template: &'static str) -> Statement {
        Statement::of(Template::Text(Cow::Borrowed(template)))
    }

    /// A statement with a template that is made of constants, once, when it is first needed.
    pub(super) fn made(template: String) -> Statement {
        Statement::of(Template::Text(Cow::Owned(template)))
    }

    /// A statement that reads a page of a long list.
    pub(crate) const fn page(page: Page) -> Statement {
        Statement::of(Template::Page(page))
    }

    /// The result has fewer rows if they take more than 64 MiB of memory, but one row at least. The caller reads the others after
    /// the last one.
    pub(crate) const fn ending_early(mut self) -> Statement {
        self.bound = Bound::Page;
        self
    }

    /// The statement fails with `TooLarge` if its rows take more than 64 MiB of memory.
    pub(crate) const fn within_memory(mut self) -> Statement {
        self.bound = Bound::Whole;
        self
    }

    /// A replica may answer. For statements whose rows the caller only looks at: no write and no right follows from them.
    pub(crate) const fn may_lag(mut self) -> Statement {
        self.may_lag = true;
        self
    }

    const fn of(template: Template) -> Statement {
        Statement {
            template,
            bound: Bound::None,
            may_lag: false,
            #[cfg(feature = "sqlite")]
            sqlite: OnceLock::new(),
            #[cfg(feature = "postgres")]
            postgres: OnceLock::new(),
        }
    }

    #[cfg(feature = "sqlite")]
    pub(super) fn for_sqlite<D: Dialect>(&'static self, caller: Caller) -> CallerSql<'static> {
        self.sqlite.get_or_init(|| RenderedSql::new::<D>(&self.template.text::<D>())).for_caller(caller)
    }

    #[cfg(feature = "postgres")]
    pub(super) fn for_postgres<D: Dialect>(&'static self, caller: Caller) -> CallerSql<'static> {
        self.postgres.get_or_init(|| RenderedSql::new::<D>(&self.template.text::<D>())).for_caller(caller)
    }
}

impl Template {
    fn text<D: Dialect>(&self) -> Cow<'_, str> {
        match self {
            Template::Text(text) => Cow::Borrowed(text),
            Template::Page(page) => Cow::Owned(D::page(page)),
        }
    }
}

impl RenderedSql {
    pub(super) fn new<D: Dialect>(template: &str) -> RenderedSql {
        let template = expand_columns(template);
        let caller = D::parameter(highest_parameter(&template) + 1);
        let restricted = render::<D>(&template, Some(&caller));
        let service = render::<D>(&template, None);
        let binds_caller = render::<D>(&template, Some("NULL")) != restricted;
        RenderedSql { restricted: (restricted != service).then_some(restricted), service, binds_caller }
    }

    pub(super) fn for_caller(&self, caller: Caller) -> CallerSql<'_> {
        match (&self.restricted, caller) {
            (Some(sql), Caller::Anonymous | Caller::User(_)) => CallerSql { sql, binds_caller: self.binds_caller },
            (None, _) | (_, Caller::Service) => CallerSql { sql: &self.service, binds_caller: false },
        }
    }
}

/// Replaces the column lists of a template.
fn expand_columns(template: &str) -> String {
    replace_braces(template, |inside| match inside.strip_prefix("erased ") {
        Some(image) => erased_image("json_object", "table_name", image),
        None => column_list(inside).unwrap_or_else(|| format!("{{{inside}}}")),
    })
}

/// The SQL that reduces the image of a row which was deleted with its owner to the columns of [`Table::outline`], and the member
/// `(erased)`, which says so to the readers. `object` is the engine's function that makes an object.
pub(super) fn erased_image(object: &str, table_name: &str, image: &str) -> String {
    let mut sql = format!("CASE WHEN {image} IS NOT NULL THEN CASE {table_name}");
    for table in Table::ALL {
        let columns = table.outline().iter().map(|name| format!("'{name}', {image} -> '{name}', "));
        let columns: String = columns.collect();
        sql += &format!(" WHEN '{}' THEN {object}({columns}'(erased)', true)", table.name());
    }
    sql + " END END"
}

/// The columns that `inside` names, as in `spaces.set $3`; `None` if it names something else.
fn column_list(inside: &str) -> Option<String> {
    let (record, list) = inside.split_once('.')?;
    let (list, first) = list.split_once(" $").map_or((list, None), |(list, number)| (list, Some(number)));
    let first: Option<usize> = first.and_then(|number| number.parse().ok());
    let columns = columns_of_record(record)?.iter();
    let table = quoted(record);
    let name = |column: &Column| quoted(column.name);
    let values = |(name, number): (String, usize)| format!("${number} AS {name}");
    let list: Vec<String> = match (list, first) {
        ("columns", None) => columns.map(|column| format!("{table}.{}", name(column))).collect(),
        ("row", None) => columns.map(name).collect(),
        ("new", None) => columns.filter(|column| column.is_new).map(name).collect(),
        ("new", Some(first)) => columns.filter(|column| column.is_new).map(name).zip(first..).map(values).collect(),
        ("patch", None) => columns.filter(|column| column.is_patch).map(name).collect(),
        ("patch", Some(first)) => columns.filter(|column| column.is_patch).map(name).zip(first..).map(values).collect(),
        ("set", Some(first)) => {
            let columns = columns.filter(|column| column.is_patch).map(name).zip((first..).step_by(2));
            let assign =
                |(name, n): (String, usize)| format!("{name} = CASE WHEN ${n} THEN ${} ELSE {name} END", n + 1);
            columns.map(assign).collect()
        }
        _ => return None,
    };
    Some(list.join(", "))
}

/// The highest `$n` of a template.
fn highest_parameter(template: &str) -> usize {
    template.split('$').skip(1).map(|rest| leading_number(rest).0).max().unwrap_or(0)
}

fn leading_number(text: &str) -> (usize, &str) {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    (text[..end].parse().unwrap_or(0), &text[end..])
}

/// The SQL for the service (`caller` is `None`), or for other callers, whose id is the SQL `caller`.
fn render<D: Dialect>(template: &str, caller: Option<&str>) -> String {
    let mut parts = template.split('$');
    let mut sql = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = leading_number(part);
        sql.push_str(&D::parameter(number));
        sql.push_str(rest);
    }
    let sql = replace_braces(&sql, |inside| render_braces::<D>(inside, caller));
    with_tables::<D>(&sql).replace("townsquare.", D::OWN_TABLES)
}

/// Writes each public table that is read or changed as the engine names it.
fn with_tables<D: Dialect>(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut before = "";
    for word in sql.split_inclusive(char::is_whitespace) {
        let name = word.trim_end().trim_end_matches([')', ',', ';']);
        let is_table = matches!(before, "FROM" | "JOIN" | "INTO" | "UPDATE")
            && Table::ALL.into_iter().any(|table| table.is_public() && quoted(table.name()) == name);
        if is_table {
            out.push_str(&D::table(name));
            out.push_str(&word[name.len()..]);
        } else {
            out.push_str(word);
        }
        before = word.trim_end();
    }
    out
}

fn render_braces<D: Dialect>(inside: &str, caller: Option<&str>) -> String {
    match inside.split(' ').collect::<Vec<_>>()[..] {
        ["any", list] => return D::any_of(list),
        ["has_path", table, bucket, paths] => return D::has_path(table, bucket, paths),
        ["space_fidgets", space, most] => return D::space_fidgets(space, most),
        ["uuid_of", column] => return D::uuid_of(column),
        ["key_of", column] => return D::key_of(column),
        ["owner_usage", user] => return D::owner_usage(user),
        ["users.has_address", address] => return D::has_address("users.email", address),
        _ => {}
    }
    if let Some((table, time)) = inside.split_once(".monotonic_updated_at ") {
        return D::monotonic_updated_at(time, &format!("{table}.updated_at"));
    }
    if let Some(columns) = readable_columns(inside, caller.is_none()) {
        return columns;
    }
    let policy = Table::ALL.into_iter().find_map(|table| {
        let name = inside.strip_prefix(table.name())?.strip_prefix('.')?;
        if name == "listed" {
            return Some((table, Action::Select, listed(table)));
        }
        let action = Action::ALL.into_iter().find(|known| known.name() == name)?;
        Some((table, action, rule(table, action)))
    });
    match (policy, caller) {
        (Some((table, action, rule)), Some(caller)) => {
            let context = SqlContext { caller, holds_key: D::holds_key, linked: D::linked, claimable: D::claimable };
            let condition = rule.sql(table, context);
            match (D::session_check(caller), action) {
                (None, _) => condition,
                // The values of a new row are constants. With AND, a planner that evaluates the policy to false would
                // skip the session check.
                (Some(check), Action::Insert) => format!("CASE WHEN {check} THEN {condition} END"),
                (Some(check), _) => format!("({check} AND {condition})"),
            }
        }
        (Some(_), None) => "TRUE".to_owned(),
        // No engine can parse this: a misspelt template fails in the first test that runs the statement.
        (None, _) => format!("<unknown template: {inside}>"),
    }
}

/// The columns of `inside`, as in `community_configs.readable`, with NULL for a column that only the service reads.
fn readable_columns(inside: &str, is_service: bool) -> Option<String> {
    let record = inside.strip_suffix(".readable")?;
    let columns = columns_of_record(record)?.iter();
    let column = |column: &Column| match column.readers {
        Readers::Service if !is_service => format!("NULL AS {}", quoted(column.name)),
        _ => quoted(column.name),
    };
    Some(columns.map(column).collect::<Vec<_>>().join(", "))
}

/// Replaces each `{inside}` of a text.
pub(super) fn replace_braces(text: &str, replace: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut rest = text;
    while let Some((before, (inside, after))) =
        rest.split_once('{').and_then(|(before, tail)| Some((before, tail.split_once('}')?)))
    {
        out.push_str(before);
        out.push_str(&replace(inside));
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    struct TestDialect;
    impl Dialect for TestDialect {
        const OWN_TABLES: &'static str = "own_";
        fn table(name: &str) -> String {
            format!("main.{name}")
        }
        fn session_check(caller: &str) -> Option<String> {
            Some(format!("session({caller})"))
        }
        fn parameter(number: usize) -> String {
            format!("?{number}")
        }
        fn monotonic_updated_at(time: &str, old: &str) -> String {
            format!("max({time}, {old})")
        }
        fn holds_key(user: &str, column: &str) -> String {
            format!("holds({user}, {column})")
        }
        fn linked(user: &str, column: &str) -> String {
            format!("linked({user}, {column})")
        }
        fn claimable(id: &str) -> String {
            format!("claimable({id})")
        }
        fn has_address(column: &str, address: &str) -> String {
            format!("{column} is {address}")
        }
        fn any_of(list: &str) -> String {
            format!("in({list})")
        }
        fn has_path(table: &str, bucket: &str, paths: &str) -> String {
            format!("has({table}, {bucket}, {paths})")
        }
        fn uuid_of(column: &str) -> String {
            format!("uuid({column})")
        }
        fn key_of(column: &str) -> String {
            format!("key({column})")
        }
        fn owner_usage(user: &str) -> String {
            format!("usage({user})")
        }
        fn space_fidgets(space: &str, most: &str) -> String {
            format!("fidgets_of({space}, {most})")
        }
    }

    /// The SQL for the service, and whether it binds the caller.
    fn service(template: &str) -> (String, bool) {
        let rendered = RenderedSql::new::<TestDialect>(template);
        let sql = rendered.for_caller(Caller::Service);
        (sql.sql.to_owned(), sql.binds_caller)
    }

    /// The SQL for a user, and whether it binds the caller.
    fn user(template: &str) -> (String, bool) {
        let rendered = RenderedSql::new::<TestDialect>(template);
        let sql = rendered.for_caller(Caller::User(Uuid::nil()));
        let anonymous = rendered.for_caller(Caller::Anonymous);
        assert_eq!((sql.sql, sql.binds_caller), (anonymous.sql, anonymous.binds_caller));
        (sql.sql.to_owned(), sql.binds_caller)
    }

    #[test]
    fn a_policy_is_true_for_the_service_and_binds_other_callers_after_the_values() {
        let delete = "DELETE FROM spaces WHERE id = $1 AND {spaces.delete}";
        assert_eq!(service(delete), ("DELETE FROM main.spaces WHERE id = ?1 AND TRUE".to_owned(), false));
        let sql = "DELETE FROM main.spaces WHERE id = ?1 AND (session(?2) AND spaces.owner_id = ?2)";
        assert_eq!(user(delete), (sql.to_owned(), true));
    }

    #[test]
    fn a_policy_that_allows_every_row_checks_the_session_of_the_caller() {
        let (sql, binds_caller) = user("SELECT id FROM community_domains WHERE {community_domains.select}");
        assert_eq!(sql, "SELECT id FROM main.community_domains WHERE (session(?1) AND TRUE)");
        assert!(binds_caller);
    }

    #[test]
    fn a_public_table_is_named_as_the_engine_names_it() {
        let (sql, _) = service(
            "INSERT INTO \"spaceRegistrations\" SELECT 1 FROM users JOIN spaces ON spaces.id = (SELECT x FROM users) \
             ON CONFLICT DO UPDATE SET users = 1",
        );
        let expected = "INSERT INTO main.\"spaceRegistrations\" SELECT 1 FROM main.users JOIN main.spaces ON \
            spaces.id = (SELECT x FROM main.users) ON CONFLICT DO UPDATE SET users = 1";
        assert_eq!(sql, expected);
        assert_eq!(service("UPDATE users SET files = 1").0, "UPDATE main.users SET files = 1");
    }

    #[test]
    fn an_insert_checks_the_session_before_the_policy() {
        let (sql, _) = user("INSERT INTO spaces SELECT $1 WHERE {spaces.insert}");
        let policy = "(spaces.owner_id = ?2 AND claimable(spaces.id))";
        assert_eq!(sql, format!("INSERT INTO main.spaces SELECT ?1 WHERE CASE WHEN session(?2) THEN {policy} END"));
    }

    #[test]
    fn a_statement_without_policies_is_the_same_for_every_caller() {
        let update = "UPDATE x SET updated_at = {x.monotonic_updated_at $2} WHERE id = $1";
        let sql = "UPDATE x SET updated_at = max(?2, x.updated_at) WHERE id = ?1";
        assert_eq!(user(update), (sql.to_owned(), false));
        assert_eq!(service(update), user(update));
    }

    #[test]
    fn column_lists_come_from_the_record() {
        let expected = [
            (
                "fidgets.columns",
                "fidgets.id, fidgets.space_id, fidgets.type, fidgets.config, fidgets.position, \
              fidgets.created_at, fidgets.updated_at",
            ),
            ("fidgets.row", "id, space_id, type, config, position, created_at, updated_at"),
            ("fidgets.new", "id, type, config, position"),
            ("fidgets.new $4", "?4 AS id, ?5 AS type, ?6 AS config, ?7 AS position"),
            ("fidgets.patch $2", "?2 AS type, ?3 AS config, ?4 AS position"),
            (
                "spaces.set $3",
                "name = CASE WHEN ?3 THEN ?4 ELSE name END, \
              description = CASE WHEN ?5 THEN ?6 ELSE description END, \
              is_public = CASE WHEN ?7 THEN ?8 ELSE is_public END",
            ),
            (
                "spaceRegistrations.new",
                "\"spaceId\", fid, \"spaceName\", \"spaceType\", \"identityPublicKey\", signature",
            ),
        ];
        for (list, sql) in expected {
            assert_eq!(service(&format!("{{{list}}}")).0, sql, "{list}");
        }
    }

    #[test]
    fn a_column_that_the_caller_does_not_read_is_null() {
        let select = "UPDATE x SET y = 1 RETURNING {community_configs.readable}";
        let (of_user, binds_caller) = user(select);
        assert!(of_user.ends_with(
            "NULL AS admin_identity_public_keys, is_published, NULL AS custom_domain_authorized, NULL AS admin_email"
        ));
        assert!(!binds_caller);
        assert_eq!(service(select), service(&select.replace("readable", "row")));
    }

    #[test]
    fn the_caller_is_bound_after_the_values_of_a_column_list() {
        let (sql, _) = user("SELECT {fidgets.new $2} WHERE {spaces.delete}");
        assert!(sql.ends_with("?5 AS position WHERE (session(?6) AND spaces.owner_id = ?6)"), "{sql}");
    }
}
