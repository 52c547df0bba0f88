//! The rows of `storage.objects`.

use jiff::Timestamp;
use serde_json::Value as Json;
use sqlx::{FromRow as _, types::Json as OfJson};

use super::{
    super::{errors::translate, types::Time},
    ProjectMoment,
};
use crate::error::Result;

/// The name that Supabase gives to an object that only keeps a folder.
macro_rules! placeholder {
    () => {
        "(name = '.emptyFolderPlaceholder' OR right(name, 24) = '/.emptyFolderPlaceholder')"
    };
}

/// Every object, in the order of the bytes of its bucket and name. `owner` is the id of a user who has a public row.
macro_rules! objects {
    ($owner:literal, $join:literal) => {
        concat!(
            "SELECT COALESCE(object.bucket_id::text, ''), COALESCE(object.name, ''), ",
            $owner,
            ", COALESCE(object.fields->>'owner_id', object.fields->>'owner') IS NOT NULL,
                COALESCE((object.fields->>'updated_at')::timestamptz, (object.fields->>'created_at')::timestamptz, now()),
                object.fields->'metadata', object.fields->'user_metadata'
             FROM (SELECT bucket_id, name, to_jsonb(object) AS fields FROM storage.objects AS object WHERE name IS NULL OR NOT ",
            placeholder!(),
            ") AS object ",
            $join,
            " ORDER BY object.bucket_id::text COLLATE \"C\", object.name COLLATE \"C\""
        )
    };
}

const OBJECTS: &str = objects!(
    "person.id::text",
    "LEFT JOIN public.users AS person
        ON person.id::text = COALESCE(object.fields->>'owner_id', object.fields->>'owner')"
);

/// For a project without the table `users`.
const OBJECTS_ALONE: &str = objects!("NULL::text", "");

/// Counts the placeholders of folders.
pub(super) const COUNT_PLACEHOLDERS: &str = concat!("SELECT count(*) FROM storage.objects WHERE ", placeholder!());

/// Objects whose name is the folder of another object: here a path is either.
pub(super) const IN_THE_WAY: &str = concat!(
    "SELECT DISTINCT file.bucket_id::text, file.name
     FROM (SELECT bucket_id, string_to_array(name, '/') AS parts FROM storage.objects WHERE NOT ",
    placeholder!(),
    ") AS inside CROSS JOIN LATERAL generate_series(1, cardinality(inside.parts) - 1) AS length
     JOIN storage.objects AS file
        ON file.bucket_id = inside.bucket_id AND file.name = array_to_string(inside.parts[1:length], '/')
     ORDER BY 1, 2 LIMIT 5"
);

/// A row of `storage.objects`. Bucket and name are texts that nothing was checked of.
#[derive(Debug, Clone)]
pub(crate) struct ProjectObject {
    pub(crate) bucket: String,
    pub(crate) path: String,
    /// The user, if there is one with this id.
    pub(crate) owner: Option<String>,
    /// Whether the row names an owner.
    pub(crate) names_owner: bool,
    pub(crate) updated_at: Timestamp,
    /// `size`, `mimetype`, `cacheControl`, `eTag`; each may be missing.
    pub(crate) metadata: Json,
    pub(crate) user_metadata: Json,
}

type ObjectRow = (String, String, Option<String>, bool, Time, Option<OfJson<Json>>, Option<OfJson<Json>>);

impl ProjectMoment {
    /// Begins to read the objects.
    pub(crate) async fn open_objects(&mut self) -> Result<()> {
        let sql = match (self.has_objects, self.has_table("users")) {
            (false, _) => "SELECT 1 WHERE false",
            (true, true) => OBJECTS,
            (true, false) => OBJECTS_ALONE,
        };
        self.open_cursor(sql).await
    }

    /// The next objects. None at the end.
    pub(crate) async fn next_objects(&mut self) -> Result<Vec<ProjectObject>> {
        let rows = self.fetch_page().await?;
        let objects = rows.iter().map(|row| {
            let row = ObjectRow::from_row(row).map_err(translate)?;
            let (bucket, path, owner, names_owner, updated_at, metadata, user_metadata) = row;
            let json = |value: Option<OfJson<Json>>| value.map_or(Json::Null, |value| value.0);
            // A time out of range is the nearest one.
            let updated_at = updated_at.into_timestamp().unwrap_or_else(|limit| limit);
            let (metadata, user_metadata) = (json(metadata), json(user_metadata));
            Ok(ProjectObject { bucket, path, owner, names_owner, updated_at, metadata, user_metadata })
        });
        objects.collect()
    }
}
