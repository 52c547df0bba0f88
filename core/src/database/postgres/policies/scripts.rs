//! The scripts that create the access rules and the triggers of the change log, generated from the rules of `policy`.
//!
//! Invariant: a script can run again, and then replaces what it created. Every policy names the roles that it applies to:
//! the service and the callers. Policies for other roles belong to other programs.

use std::fmt::Write;

use super::{
    super::{dialect::Postgresql, role_mode::Roles},
    capture::{self, table_name},
};
use crate::{
    database::statement::Dialect as _,
    policy::{Action, Predicate, Readers, SqlContext, Table, quoted, rule, updatable, updated},
};

/// A part of the access rules.
pub(super) struct Part {
    /// The qualified name of a table, [`SCHEMA`], or `functions`.
    pub(super) name: String,
    pub(super) script: String,
}

/// The name of the part that grants the schema.
pub(super) const SCHEMA: &str = "schema";

/// The name of the part with the functions.
pub(super) const FUNCTIONS: &str = "functions";

/// The functions that policies call.
const FUNCTION_SCRIPT: &str = include_str!("functions.sql");

/// The user id that policies compare with; NULL for an anonymous caller.
const CALLER: &str = "(SELECT townsquare.caller_id())";

const CONTEXT: SqlContext<'static> =
    SqlContext { caller: CALLER, holds_key, linked: Postgresql::linked, claimable: Postgresql::claimable };

/// The condition that a connection of the service role works for the service.
const IS_SERVICE: &str = "(SELECT townsquare.is_service())";

/// All parts, in the order in which they are created. `tables_with_others` names the tables that have permissive policies of
/// other programs for our roles: there, restrictive policies keep them from showing callers more rows.
pub(super) fn parts(roles: &Roles, tables_with_others: &[String]) -> Vec<Part> {
    let mut parts = vec![
        Part { name: SCHEMA.to_owned(), script: schema_script(roles) },
        Part { name: FUNCTIONS.to_owned(), script: functions_script(roles) },
    ];
    for table in Table::ALL {
        let name = table_name(table);
        let mut conditions = Action::ALL.map(|action| (action, condition(table, action)));
        let mut updated = updated(table).map(|predicate| predicate.sql(table, CONTEXT));
        if table == Table::Files {
            // The service makes the rows of objects. A row of an object that is not there could stop all uploads of objects.
            let new_row = |rule: &str, of_owner: &str| {
                format!("({rule}) AND files.is_inline AND {}{of_owner}", has_plain_path("files"))
            };
            let of_owner = format!(" AND (files.owner_id IS NULL OR files.owner_id = {CALLER})");
            for (_, condition) in conditions.iter_mut().filter(|(action, _)| *action == Action::Insert) {
                *condition = condition.as_deref().map(|rule| new_row(rule, &of_owner));
            }
            // A move leaves the owner: the trigger limits how an update changes it.
            updated = updated.as_deref().map(|rule| new_row(rule, ""));
        }
        let mut script = TableScript::new(roles, &name, &conditions, updated.as_deref(), tables_with_others);
        script.write_grants(|action| match (action, updatable(table)) {
            (Action::Update, Some(columns)) => format!(" ({})", columns.join(", ")),
            (Action::Select, _) if table.is_public() => format!(" ({})", readable(table).join(", ")),
            _ => String::new(),
        });
        match table {
            Table::CommunityConfigs => script.write_trigger("UPDATE", "", "protect_columns"),
            Table::Files => script.write_trigger("UPDATE OF owner_id, size", OWNER_GETS_MORE, "protect_owner"),
            _ => {}
        }
        parts.push(Part { script: script.sql + &capture::triggers_script(&name), name });
    }
    let others = capture::tables_without_policies();
    parts.extend(others.map(|name| Part { script: capture::triggers_script(&name), name }));
    // Whoever may select or change a file may select or change its content and its intent.
    let of_content = |action| {
        format!(
            "EXISTS (SELECT 1 FROM townsquare.files AS files
                WHERE files.bucket = file_contents.bucket AND files.path = file_contents.path AND {})",
            rule(Table::Files, action).sql(Table::Files, CONTEXT)
        )
    };
    // The end of a move deletes the source.
    let of_intent = |action| {
        format!(
            "{} AND (file_intents.moved_from IS NULL OR EXISTS (SELECT 1 FROM townsquare.files AS files
                WHERE files.bucket = file_intents.bucket AND files.path = file_intents.moved_from AND {}))",
            rule(Table::Files, action).sql_of_row("file_intents", CONTEXT),
            rule(Table::Files, Action::Delete).sql(Table::Files, CONTEXT)
        )
    };
    // The service makes an intent the row of its file, whatever the file is then. So who begins one must be allowed to change the
    // file that is there, and keeps the owner of the file that moves. No intent without a name of staged bytes can be settled.
    let new_intent = format!(
        "{} AND {} AND NOT EXISTS (SELECT 1 FROM townsquare.files AS files
                WHERE files.bucket = file_intents.bucket AND files.path = file_intents.path AND ({}) IS NOT TRUE)
            AND file_intents.staged ~ '^[0-9a-f]{{32}}$'
            AND (file_intents.owner_id IS NULL OR file_intents.owner_id = {CALLER} OR EXISTS (
                SELECT 1 FROM townsquare.files AS files WHERE files.bucket = file_intents.bucket
                    AND files.path = file_intents.moved_from AND files.owner_id = file_intents.owner_id))",
        of_intent(Action::Insert),
        has_plain_path("file_intents"),
        rule(Table::Files, Action::Update).sql(Table::Files, CONTEXT)
    );
    let contents = Action::ALL.map(|action| (action, Some(of_content(action))));
    // The service changes and deletes intents.
    let intents = Action::ALL.map(|action| {
        let condition = match action {
            Action::Select => Some(of_intent(action)),
            Action::Insert => Some(new_intent.clone()),
            Action::Update | Action::Delete => None,
        };
        (action, condition)
    });
    for (name, conditions, readable) in
        [("townsquare.file_contents", contents, ""), ("townsquare.file_intents", intents, READABLE_OF_INTENTS)]
    {
        let mut script = TableScript::new(roles, name, &conditions, None, tables_with_others);
        script.write_grants(|action| if action == Action::Select { readable.to_owned() } else { String::new() });
        parts.push(Part { name: name.to_owned(), script: script.sql });
    }
    parts
}

/// The columns that statements of callers read. Whoever knows the name of staged bytes could have them installed elsewhere.
const READABLE_OF_INTENTS: &str = " (bucket, path, moved_from, base_etag)";

/// The condition that an update gives an owner a file, or more bytes.
const OWNER_GETS_MORE: &str = "WHEN (NEW.owner_id IS NOT NULL AND (NEW.owner_id IS DISTINCT FROM OLD.owner_id
    OR NEW.size > OLD.size))";

/// The condition that no segment of a path leads to another place: a store would refuse it, and an export could not have it.
fn has_plain_path(row: &str) -> String {
    format!("{row}.path !~ '(^|/)[.]{{0,2}}(/|$)' AND position(chr(92) IN {row}.path) = 0")
}

/// The columns that every caller may read. A column that another program added is none of them.
fn readable(table: Table) -> Vec<String> {
    let columns = table.columns().iter().filter(|column| column.readers == Readers::Everyone);
    columns.map(|column| quoted(column.name)).collect()
}

/// The condition that a user has linked one of the identity keys in a column.
fn holds_key(user: &str, column: &str) -> String {
    format!("townsquare.holds_key({user}, {column})")
}

/// The condition of a rule; `None` if no caller may perform the action.
fn condition(table: Table, action: Action) -> Option<String> {
    let predicate = rule(table, action);
    (*predicate != Predicate::Nobody).then(|| predicate.sql(table, CONTEXT))
}

fn schema_script(roles: &Roles) -> String {
    let mut sql =
        "REVOKE ALL ON SCHEMA townsquare FROM PUBLIC; REVOKE ALL ON ALL TABLES IN SCHEMA townsquare FROM PUBLIC;"
            .to_owned();
    if roles.has_callers {
        let callers = &roles.callers;
        let _ = write!(
            sql,
            "REVOKE ALL ON SCHEMA townsquare FROM {callers}; REVOKE ALL ON ALL TABLES IN SCHEMA townsquare FROM {callers};
             GRANT USAGE ON SCHEMA public, townsquare TO {callers};"
        );
    }
    sql
}

/// The names of the functions that `open` creates.
pub(super) fn function_names() -> Vec<String> {
    let scripts = FUNCTION_SCRIPT.to_owned() + &capture::functions();
    let definitions = scripts.split("CREATE OR REPLACE FUNCTION ").skip(1);
    let names = definitions.filter_map(|definition| definition.split_once('(')?.0.split_once('.'));
    names.map(|(_, name)| name.to_owned()).collect()
}

fn functions_script(roles: &Roles) -> String {
    // The functions that policies and statements of callers call. PostgreSQL grants every new function to PUBLIC.
    let names = "FUNCTION townsquare.caller_id(), townsquare.is_service(), townsquare.admitted(UUID),
        townsquare.holds_key(UUID, TEXT[]), townsquare.owner_usage(UUID), townsquare.space_fidgets(UUID, BIGINT),
        townsquare.is_claimable(UUID), townsquare.space_lock(UUID), townsquare.path_lock(TEXT, TEXT)";
    let callers = if roles.has_callers { format!(", {}", roles.callers) } else { String::new() };
    format!(
        "{FUNCTION_SCRIPT}{}REVOKE ALL ON ALL ROUTINES IN SCHEMA townsquare FROM PUBLIC{callers};
         GRANT EXECUTE ON {names} TO {};",
        capture::functions(),
        roles.of_policies()
    )
}

/// The script of one table.
struct TableScript<'a> {
    sql: String,
    roles: &'a Roles,
    name: &'a str,
    conditions: &'a [(Action, Option<String>); 4],
}

impl<'a> TableScript<'a> {
    /// Turns row-level security on and replaces the policies. `updated` is the condition on the rows that an update leaves, if
    /// it is another than that on the rows it changes.
    fn new(
        roles: &'a Roles,
        name: &'a str,
        conditions: &'a [(Action, Option<String>); 4],
        updated: Option<&str>,
        tables_with_others: &[String],
    ) -> TableScript<'a> {
        let service = &roles.service;
        // The conditions name tables without a schema.
        let sql = format!(
            "SET LOCAL search_path = public, pg_temp;
             ALTER TABLE {name} ENABLE ROW LEVEL SECURITY;
             ALTER TABLE {name} FORCE ROW LEVEL SECURITY;
             DROP POLICY IF EXISTS townsquare_service ON {name};
             CREATE POLICY townsquare_service ON {name} TO {service} USING ({IS_SERVICE});\n"
        );
        let mut script = TableScript { sql, roles, name, conditions };
        let has_others = tables_with_others.iter().any(|table| table == name);
        for (action, condition) in conditions {
            let to = roles.of_policies();
            let updated = updated.filter(|_| *action == Action::Update);
            let clauses = |condition: &str, twin: &str| match (action, updated) {
                (Action::Insert, _) => format!("WITH CHECK ({twin}{condition})"),
                (_, None) => format!("USING ({twin}{condition})"),
                (_, Some(updated)) => format!("USING ({twin}{condition}) WITH CHECK ({twin}{updated})"),
            };
            let own = condition.as_deref().map(|condition| clauses(condition, ""));
            script.write_policy("", *action, own.as_deref().map(|clauses| (clauses, "PERMISSIVE", &*to)));
            // The service may be a member of the callers' role, and then is bound by policies for that role.
            let callers = &roles.callers;
            let is_service = format!("(SELECT current_user <> '{callers}' AND townsquare.is_service()) OR ");
            let twin = clauses(condition.as_deref().unwrap_or("FALSE"), &is_service);
            script.write_policy("only_", *action, has_others.then_some((&*twin, "RESTRICTIVE", &*to)));
        }
        script
    }

    /// Replaces a policy of these clauses, kind and roles; `None` removes it.
    fn write_policy(&mut self, prefix: &str, action: Action, policy: Option<(&str, &str, &str)>) {
        let name = self.name;
        let _ = writeln!(self.sql, "DROP POLICY IF EXISTS townsquare_{prefix}{action} ON {name};");
        if let Some((clauses, kind, roles)) = policy {
            let _ = writeln!(
                self.sql,
                "CREATE POLICY townsquare_{prefix}{action} ON {name} AS {kind} FOR {action} TO {roles} {clauses};"
            );
        }
    }

    /// Grants the actions to the callers. `columns` limits an action to columns.
    fn write_grants(&mut self, columns: impl Fn(Action) -> String) {
        if !self.roles.has_callers {
            return;
        }
        let (name, callers) = (self.name, &self.roles.callers);
        let _ = writeln!(self.sql, "REVOKE ALL ON {name} FROM {callers};");
        for (action, _) in self.conditions.iter().filter(|(_, condition)| condition.is_some()) {
            let _ = writeln!(self.sql, "GRANT {action}{} ON {name} TO {callers};", columns(*action));
        }
    }

    /// Replaces the trigger that limits the columns that callers change.
    fn write_trigger(&mut self, event: &str, when: &str, function: &str) {
        let (name, callers) = (self.name, &self.roles.callers);
        let _ = writeln!(
            self.sql,
            "DROP TRIGGER IF EXISTS townsquare_protect_columns ON {name};
             CREATE TRIGGER townsquare_protect_columns BEFORE {event} ON {name}
                FOR EACH ROW {when} EXECUTE FUNCTION townsquare.{function}('{callers}');"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(roles: &Roles, others: &[String]) -> String {
        parts(roles, others).into_iter().map(|part| part.script).collect()
    }

    #[test]
    fn each_rule_becomes_a_policy_and_an_action_without_a_rule_is_not_granted() {
        let roles = Roles { service: "app".into(), callers: "callers_7".into(), has_callers: true, ..Roles::unknown() };
        let sql = all(&roles, &[]);
        for needed in [
            "CREATE POLICY townsquare_select ON public.spaces AS PERMISSIVE FOR select TO app, callers_7 USING \
             ((spaces.owner_id = (SELECT townsquare.caller_id()) OR NULLIF(spaces.is_public, FALSE) IS NOT NULL));",
            "GRANT update (navigation_config, updated_at) ON public.community_configs TO callers_7;",
            "GRANT select (id, community_id, updated_at, brand_config, assets_config, community_config, fidgets_config, \
             navigation_config, ui_config, is_published) ON public.community_configs TO callers_7;",
            "GRANT select (id, email) ON public.users TO callers_7;",
            "townsquare.holds_key((SELECT townsquare.caller_id()), community_configs.admin_identity_public_keys)",
            "ALTER TABLE public.\"spaceRegistrations\" FORCE ROW LEVEL SECURITY;",
        ] {
            assert!(sql.contains(needed), "{needed}\n{sql}");
        }
        assert!(!sql.contains("GRANT insert ON public.users") && !sql.contains("RESTRICTIVE"));
        let sql = all(&Roles { has_callers: false, ..roles.clone() }, &[]);
        assert!(!sql.contains("TO callers_7"), "{sql}");
        let sql = all(&roles, &["public.users".to_owned()]);
        assert!(sql.contains(
            "townsquare_only_insert ON public.users AS RESTRICTIVE FOR insert TO app, callers_7 WITH CHECK \
             ((SELECT current_user <> 'callers_7' AND townsquare.is_service()) OR FALSE)"
        ));
        assert!(!sql.contains("townsquare_only_insert ON public.spaces AS"));
    }
}
