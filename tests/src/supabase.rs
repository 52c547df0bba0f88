//! A Supabase project: a database with the tables as Supabase has them, and the bytes of its files.

use std::{fs, path::Path};

use townsquare::Uuid;

use crate::{
    postgres::{APP_ROLE, OWNER_ROLE, Server, server},
    raw_sql::{RawConnection, quoted},
};

/// The password of every user with one.
pub const PASSWORD: &str = "correct horse";

/// The users, by the first part of their addresses.
pub const USERS: [&str; 9] = ["ann", "ben", "bea", "dan", "una", "oli", "nop", "fir", "gus"];

/// The tables, as a project has them that was made with the SQL of the specification.
const PUBLIC: &str = include_str!("../../core/migrations/postgres/0002_tables.sql");

/// The tables of Supabase Auth and Supabase Storage, as far as a move reads them, and columns beside these.
const SUPABASE: &str = "
    CREATE SCHEMA auth;
    CREATE TABLE auth.users (
        instance_id UUID, id UUID NOT NULL PRIMARY KEY, aud VARCHAR(255), role VARCHAR(255), email VARCHAR(255),
        encrypted_password VARCHAR(255), email_confirmed_at TIMESTAMPTZ, invited_at TIMESTAMPTZ,
        confirmation_token VARCHAR(255), raw_app_meta_data JSONB, raw_user_meta_data JSONB, is_super_admin BOOLEAN,
        created_at TIMESTAMPTZ, updated_at TIMESTAMPTZ, phone TEXT UNIQUE, banned_until TIMESTAMPTZ,
        is_sso_user BOOLEAN NOT NULL DEFAULT false, deleted_at TIMESTAMPTZ, is_anonymous BOOLEAN NOT NULL DEFAULT false);
    ALTER TABLE auth.users ENABLE ROW LEVEL SECURITY;
    CREATE SCHEMA storage;
    CREATE TABLE storage.buckets (
        id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL UNIQUE, owner UUID, created_at TIMESTAMPTZ DEFAULT now(),
        updated_at TIMESTAMPTZ DEFAULT now(), public BOOLEAN DEFAULT false, file_size_limit BIGINT,
        allowed_mime_types TEXT[], owner_id TEXT);
    ALTER TABLE storage.buckets ENABLE ROW LEVEL SECURITY;
    CREATE TABLE storage.objects (
        id UUID NOT NULL PRIMARY KEY DEFAULT gen_random_uuid(), bucket_id TEXT REFERENCES storage.buckets (id), name TEXT,
        owner UUID, created_at TIMESTAMPTZ DEFAULT now(), updated_at TIMESTAMPTZ DEFAULT now(),
        last_accessed_at TIMESTAMPTZ DEFAULT now(), metadata JSONB,
        path_tokens TEXT[] GENERATED ALWAYS AS (string_to_array(name, '/')) STORED, version TEXT, owner_id TEXT,
        user_metadata JSONB);
    CREATE UNIQUE INDEX bucketid_objname ON storage.objects (bucket_id, name);
    ALTER TABLE storage.objects ENABLE ROW LEVEL SECURITY;
    ALTER TABLE public.users ENABLE ROW LEVEL SECURITY;
    ALTER TABLE public.users ADD FOREIGN KEY (id) REFERENCES auth.users (id) ON DELETE CASCADE;
    ALTER TABLE public.users ADD COLUMN nickname TEXT NOT NULL DEFAULT '';
    INSERT INTO storage.buckets (id, name, public)
        VALUES ('avatars', 'avatars', true), ('assets', 'assets', false), ('spaces', 'spaces', true),
            ('private', 'private', false)";

/// A project with users of every kind, spaces, and files. Dropping it drops its database.
pub struct SupabaseProject {
    server: &'static Server,
    database: String,
    /// As the owner of all tables.
    pub raw: RawConnection,
    /// The file of the bucket `private` begins with the id of the user `ann`.
    pub ann: Uuid,
    /// A space of `ann` with fidgets and a file.
    pub space: Uuid,
}

impl SupabaseProject {
    /// Returns `None` if PostgreSQL is not installed.
    ///
    /// # Panics
    /// When the server refuses the tables.
    pub fn new() -> Option<SupabaseProject> {
        let server = server()?;
        let database = server.new_database();
        let raw = RawConnection::postgres(&server.url(APP_ROLE, &database)).expect("it connects");
        let project = SupabaseProject { server, database, raw, ann: Uuid::new_v4(), space: Uuid::new_v4() };
        project.raw.run(PUBLIC);
        project.raw.run(SUPABASE);
        project.add_users();
        project.add_rows();
        for (bucket, name, _) in project.files() {
            project.add_object(&bucket, &name, None);
        }
        project.describe_objects();
        Some(project)
    }

    /// The URL with a role that may read every row.
    pub fn url(&self) -> String {
        self.server.url(APP_ROLE, &self.database)
    }

    /// The server and the name of the database.
    pub fn place(&self) -> (&'static Server, &str) {
        (self.server, &self.database)
    }

    /// The URL with a role that may read the tables, but not every row.
    pub fn restricted_url(&self) -> String {
        self.grant_reads(OWNER_ROLE);
        self.server.url(OWNER_ROLE, &self.database)
    }

    /// The URL with a role that owns nothing and reads every row. Dropping the project drops the role.
    pub fn reader_url(&self) -> String {
        let reader = self.reader();
        self.server.administrator("postgres").run(&format!("CREATE ROLE {reader} LOGIN BYPASSRLS"));
        self.grant_reads(&reader);
        self.server.url(&reader, &self.database)
    }

    fn reader(&self) -> String {
        format!("reader_{}", self.database)
    }

    fn grant_reads(&self, role: &str) {
        for schema in ["public", "auth", "storage"] {
            self.raw.run(&format!("GRANT USAGE ON SCHEMA {schema} TO {role}"));
            self.raw.run(&format!("GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"));
        }
    }

    fn add_users(&self) {
        let hash = bcrypt::hash(PASSWORD, 4).expect("bcrypt");
        for name in USERS {
            let id = if name == "ann" { self.ann } else { Uuid::new_v4() };
            let password = match name {
                "nop" => "NULL".to_owned(),
                "fir" => "'$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=a$b$c'".to_owned(),
                _ => quoted(&hash),
            };
            let time = |is_set: bool, time: &'static str| if is_set { time } else { "NULL" };
            let banned = match name {
                "ben" => "now() + interval '1 day'",
                "bea" => "now() - interval '1 day'",
                _ => "NULL",
            };
            self.raw.run(&format!(
                "INSERT INTO auth.users (id, email, encrypted_password, email_confirmed_at, updated_at, deleted_at, banned_until)
                 VALUES ('{id}', '{name}@town.example', {password}, {}, '2024-05-06 07:08:09.123456+00', {}, {banned})",
                time(name != "una", "'2024-01-02 03:04:05+00'"),
                time(name == "dan", "now()"),
            ));
            let address = match name {
                "ann" => "Ann@Town.Example".to_owned(),
                "oli" => "oliver@town.example".to_owned(),
                _ => format!("{name}@town.example"),
            };
            if name != "gus" {
                self.raw.run(&format!(
                    "INSERT INTO public.users (id, email, created_at, updated_at)
                     VALUES ('{id}', '{address}', '2023-01-02 03:04:05.678901+00', NULL)"
                ));
            }
        }
    }

    fn add_rows(&self) {
        let (ann, space) = (self.ann, self.space);
        self.raw.run(&format!(
            "INSERT INTO public.spaces (id, name, description, owner_id, is_public, created_at)
                 VALUES ('{space}', 'Harbor ''⚓''', NULL, '{ann}', true, '2023-02-03 04:05:06+00'),
                     (gen_random_uuid(), '', 'no owner', NULL, NULL, NULL);
             INSERT INTO public.fidgets (space_id, type, config, position)
                 SELECT '{space}', 'text', jsonb_build_object('n', n, 'x', 1e2, 'y', 0.5), NULL
                 FROM generate_series(1, 200) AS n;
             INSERT INTO public.community_configs (community_id, brand_config, assets_config, community_config, fidgets_config,
                     admin_identity_public_keys)
                 VALUES ('town', '{{}}', '[]', '1', 'null', ARRAY['a', 'b''c']);
             INSERT INTO public.community_domains (community_id, domain, domain_type) VALUES ('town', 'town.example', 'custom');
             INSERT INTO public.\"spaceRegistrations\" (\"spaceId\", fid, \"spaceName\", \"spaceType\")
                 VALUES (gen_random_uuid(), -5, 'Harbor', 'profile')"
        ));
    }

    /// Buckets, names and bytes of the files. One is larger than a file that the database keeps.
    pub fn files(&self) -> Vec<(String, String, Vec<u8>)> {
        let (ann, space) = (self.ann, self.space);
        let file = |bucket: &str, name: String, bytes: Vec<u8>| (bucket.to_owned(), name, bytes);
        vec![
            file("avatars", format!("{ann}/Gesicht ü 'x' #1.png"), b"a face".to_vec()),
            file("assets", "images/logo.svg".to_owned(), vec![b'x'; 70_000]),
            file("spaces", format!("{space}/tabOrder"), b"[]".to_vec()),
            file("private", format!("{ann}/homebase"), Vec::new()),
        ]
    }

    /// Inserts a row of an object. `size`: the one of its metadata, if not that of the file.
    pub fn add_object(&self, bucket: &str, name: &str, size: Option<usize>) {
        let of_file = self.files().into_iter().find(|file| file.0 == bucket && file.1 == name);
        let size = size.or(of_file.map(|file| file.2.len())).unwrap_or_default();
        self.raw.run(&format!(
            "INSERT INTO storage.objects (bucket_id, name, metadata, created_at, updated_at) VALUES ({}, {},
             '{{\"size\": {size}, \"mimetype\": \"image/png\", \"cacheControl\": \"max-age=60\", \"eTag\": \"\\\"0\\\"\"}}',
             '2024-02-03 04:05:06.789+00', '2024-03-04 05:06:07.89+00')",
            quoted(bucket),
            quoted(name)
        ));
    }

    /// Gives owners and metadata to the objects, and adds placeholders.
    fn describe_objects(&self) {
        let ann = self.ann;
        self.raw.run(&format!(
            "UPDATE storage.objects SET owner_id = '{ann}', user_metadata = '{{\"author\": \"ann\", \"n\": 1}}'
                 WHERE bucket_id = 'avatars';
             UPDATE storage.objects SET owner = (SELECT id FROM auth.users WHERE email LIKE 'gus@%') WHERE bucket_id = 'assets';
             UPDATE storage.objects SET owner = '{ann}' WHERE bucket_id = 'spaces';
             UPDATE storage.objects SET metadata = NULL, updated_at = NULL WHERE bucket_id = 'private';
             INSERT INTO storage.objects (bucket_id, name, metadata) VALUES ('avatars', '.emptyFolderPlaceholder', '{{}}'),
                 ('assets', 'images/new/.emptyFolderPlaceholder', NULL)"
        ));
    }

    /// Writes the files as `BUCKET/NAME` to a folder.
    ///
    /// # Panics
    /// When the folder is not writable.
    pub fn write_files(&self, folder: &Path) {
        for (bucket, name, bytes) in self.files() {
            let path = folder.join(bucket).join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, bytes).expect("a file");
        }
    }

    /// Everything that a write would change: relations, columns, triggers, policies, roles' settings, and each row with the
    /// transaction that wrote it.
    pub fn state(&self) -> String {
        let catalog = "SELECT string_agg(line, E'\\n' ORDER BY line) FROM (
            SELECT concat_ws(' ', class.oid, class.relname, class.relowner, class.relacl, class.relrowsecurity,
                class.relforcerowsecurity, class.relhastriggers, class.xmin) AS line
                FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = relnamespace
                WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'
            UNION ALL SELECT concat_ws(' ', oid, nspname, nspacl) FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_temp%'
                AND nspname NOT LIKE 'pg\\_toast%'
            UNION ALL SELECT concat_ws(' ', oid, tgname) FROM pg_trigger
            UNION ALL SELECT concat_ws(' ', oid, polname) FROM pg_policy
            UNION ALL SELECT concat_ws(' ', oid, proname) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
        ) AS lines";
        let mut state = vec![self.raw.value(catalog)];
        let tables = "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables
            WHERE schemaname IN ('public', 'auth', 'storage') ORDER BY 1";
        for table in self.raw.rows(tables).into_iter().flatten().flatten() {
            let rows =
                format!("SELECT string_agg(concat_ws(' ', t.xmin, t), E'\\n' ORDER BY t::text) FROM {table} AS t");
            state.push(format!("{table}\n{}", self.raw.value(&rows)));
        }
        state.join("\n")
    }
}

impl Drop for SupabaseProject {
    fn drop(&mut self) {
        self.server.drop_database(&self.database);
        self.server.administrator("postgres").run(&format!("DROP ROLE IF EXISTS {}", self.reader()));
    }
}
