//! What a project has, and why it cannot be moved: read before the target is touched.

use std::{collections::BTreeMap, time::Duration};

use super::{
    super::{
        adoption,
        in_runtime::InRuntime,
        query::{tuples, value},
    },
    ProjectMoment, accounts, objects, of_project,
};
use crate::{
    database::transfer::tables,
    error::{Error, Result},
};

/// How long the statements of a survey may take together: each counts the rows of a table.
const SURVEY_TIMEOUT: Duration = Duration::from_secs(3_600);

/// The counts of a project.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProjectSurvey {
    /// The rows to move, by the name of the target's table. Files are counted by who checks their bytes.
    pub(crate) rows: BTreeMap<&'static str, u64>,
    /// Why the rows cannot be moved.
    pub(crate) faults: Vec<String>,
    pub(crate) users_without_row: u64,
    pub(crate) deleted_users: u64,
    pub(crate) banned_users: u64,
    pub(crate) unconfirmed_users: u64,
    pub(crate) placeholders: u64,
    /// The buckets whose files are not public.
    pub(crate) private_buckets: Vec<String>,
}

/// The columns of Supabase that a move reads: schema, table, column, and the type that it may have.
const FOREIGN: [(&str, &str, &str, &str); 6] = [
    ("auth", "users", "id", "uuid"),
    ("auth", "users", "email", "text"),
    ("auth", "users", "encrypted_password", "text"),
    ("auth", "users", "email_confirmed_at", "timestamp with time zone"),
    ("storage", "objects", "bucket_id", "text"),
    ("storage", "objects", "name", "text"),
];

/// The columns of tables of Supabase, with their types.
const COLUMNS: &str = "SELECT namespace.nspname::text, class.relname::text, attribute.attname::text,
        format_type(attribute.atttypid, NULL)
    FROM pg_catalog.pg_attribute AS attribute
    JOIN pg_catalog.pg_class AS class ON class.oid = attribute.attrelid
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE (namespace.nspname, class.relname) IN (('auth', 'users'), ('storage', 'objects'))
        AND attribute.attnum > 0 AND NOT attribute.attisdropped";

impl ProjectMoment {
    /// Whether the project has this table of SPEC 2.
    pub(super) fn has_table(&self, name: &str) -> bool {
        self.found.iter().any(|found| found == name)
    }

    /// Compares the tables with those of SPEC 2, and counts rows and accounts.
    ///
    /// # Errors
    /// `Config` for a database that is none of a Supabase project.
    pub(crate) async fn survey(&mut self) -> Result<ProjectSurvey> {
        let runtime = self.runtime.clone();
        let survey = async {
            let done = tokio::time::timeout(SURVEY_TIMEOUT, self.read_survey()).await;
            done.unwrap_or_else(|_| Err(Error::unavailable("The database of the project does not answer")))
        };
        InRuntime::new(&runtime, survey).await.map_err(of_project)
    }

    async fn read_survey(&mut self) -> Result<ProjectSurvey> {
        if value(&mut self.connection, "SELECT to_regnamespace('townsquare') IS NOT NULL").await? {
            return Err(Error::config(
                "The database of the project has the schema townsquare: it was adopted, so it is the source of an ordinary move",
            ));
        }
        let (found, faults) = adoption::check_copy(&mut self.connection).await?;
        self.found = found;
        let mut survey = ProjectSurvey { faults, ..ProjectSurvey::default() };
        self.find_foreign(&mut survey).await?;
        if self.found.is_empty() && !self.has_accounts {
            return Err(Error::config(
                "The database has neither auth.users nor a table of the library: it is none of a Supabase project",
            ));
        }
        if !survey.faults.is_empty() {
            return Ok(survey);
        }
        let found = self.found.clone();
        for table in tables().iter().filter(|table| found.iter().any(|name| name == table.name)) {
            let count: i64 = value(&mut self.connection, &table.count_of_project()).await?;
            survey.rows.insert(table.name, count.unsigned_abs());
        }
        self.count_accounts(&mut survey).await?;
        if self.has_objects {
            let count: i64 = value(&mut self.connection, objects::COUNT_PLACEHOLDERS).await?;
            survey.placeholders = count.unsigned_abs();
            survey.private_buckets = self.private_buckets().await?;
            for (bucket, name) in tuples::<(String, String)>(&mut self.connection, objects::IN_THE_WAY, &[]).await? {
                survey.faults.push(format!(
                    "the object {bucket}/{name} has the name of a folder with other objects; a path is a file or a folder"
                ));
            }
        }
        Ok(survey)
    }

    /// Looks for the tables of Supabase.
    async fn find_foreign(&mut self, survey: &mut ProjectSurvey) -> Result<()> {
        let columns: Vec<(String, String, String, String)> = tuples(&mut self.connection, COLUMNS, &[]).await?;
        let has = |schema: &str| columns.iter().any(|column| column.0 == schema);
        (self.has_accounts, self.has_objects) = (has("auth"), has("storage"));
        for (schema, table, name, wanted) in FOREIGN.into_iter().filter(|column| has(column.0)) {
            let found = columns.iter().find(|column| (&*column.0, &*column.1, &*column.2) == (schema, table, name));
            match found {
                None => survey.faults.push(format!("{schema}.{table}.{name} is missing")),
                Some((.., found)) if found == wanted || wanted == "text" && found == "character varying" => {}
                Some((.., found)) => survey.faults.push(format!("{schema}.{table}.{name} is {found}, not {wanted}")),
            }
        }
        Ok(())
    }

    async fn private_buckets(&mut self) -> Result<Vec<String>> {
        if !value::<bool>(&mut self.connection, "SELECT to_regclass('storage.buckets') IS NOT NULL").await? {
            return Ok(Vec::new());
        }
        let sql = "SELECT id::text FROM storage.buckets AS bucket WHERE to_jsonb(bucket)->'public' IS DISTINCT FROM 'true' ORDER BY 1";
        let buckets: Vec<(String,)> = tuples(&mut self.connection, sql, &[]).await?;
        Ok(buckets.into_iter().map(|(name,)| name).collect())
    }

    async fn count_accounts(&mut self, survey: &mut ProjectSurvey) -> Result<()> {
        if !self.has_accounts {
            return Ok(());
        }
        if !self.has_table("users") {
            let count: i64 = value(&mut self.connection, accounts::COUNT_ALONE).await?;
            survey.users_without_row = count.unsigned_abs();
            self.has_accounts = false;
            return Ok(());
        }
        let counts: Vec<(i64, i64, i64, i64, i64, i64)> = tuples(&mut self.connection, accounts::COUNT, &[]).await?;
        let Some((passwords, addresses, without_row, deleted, banned, unconfirmed)) = counts.into_iter().next() else {
            return Ok(());
        };
        survey.rows.insert("credentials", passwords.unsigned_abs());
        survey.rows.insert("verified_emails", addresses.unsigned_abs());
        survey.users_without_row = without_row.unsigned_abs();
        survey.deleted_users = deleted.unsigned_abs();
        survey.banned_users = banned.unsigned_abs();
        survey.unconfirmed_users = unconfirmed.unsigned_abs();
        Ok(())
    }
}
