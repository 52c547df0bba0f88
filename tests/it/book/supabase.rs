//! The programs of the chapter about Supabase: one copies a project, the other one adopts its database.

use std::fs;

use townsquare::Uuid;
use townsquare_tests::{
    paths::workspace,
    postgres::{APP_ROLE, server},
    raw_sql::RawConnection,
    subprocess::{child, name_of, role, run_child},
    supabase::SupabaseProject,
    temp_dir,
};

use super::programs::{expected, print_all, printed};

#[path = "../../../docs/examples/rust/from_supabase.rs"]
mod from_supabase;
#[path = "../../../docs/examples/rust/move_from_supabase.rs"]
mod move_from_supabase;

/// Tables as a project has them, with one user and one space.
fn fill(project: &RawConnection) {
    let ann = Uuid::new_v4();
    let hash = bcrypt::hash("correct horse", 4).expect("bcrypt");
    project.run(&format!(
        "CREATE SCHEMA auth;
         CREATE TABLE auth.users (id UUID PRIMARY KEY, email TEXT, encrypted_password TEXT, email_confirmed_at TIMESTAMPTZ,
             deleted_at TIMESTAMPTZ, banned_until TIMESTAMPTZ);
         CREATE TABLE public.users (id UUID PRIMARY KEY REFERENCES auth.users (id) ON DELETE CASCADE, email TEXT UNIQUE NOT NULL,
             created_at TIMESTAMPTZ DEFAULT now(), updated_at TIMESTAMPTZ DEFAULT now());
         CREATE TABLE public.spaces (id UUID PRIMARY KEY DEFAULT gen_random_uuid(), name TEXT NOT NULL, description TEXT,
             owner_id UUID REFERENCES public.users (id) ON DELETE CASCADE, is_public BOOLEAN NOT NULL DEFAULT false,
             created_at TIMESTAMPTZ DEFAULT now(), updated_at TIMESTAMPTZ DEFAULT now());
         INSERT INTO auth.users VALUES ('{ann}', 'ann@town.example', '{hash}', now());
         INSERT INTO public.users (id, email) VALUES ('{ann}', 'ann@town.example');
         INSERT INTO public.spaces (name, owner_id) VALUES ('Harbor', '{ann}')"
    ));
}

#[test]
fn the_program_takes_over_a_project_and_its_users_sign_in() {
    let test = name_of(&the_program_takes_over_a_project_and_its_users_sign_in);
    if role().is_some() {
        return print_all(from_supabase::run);
    }
    let Some(postgres) = server() else { return };
    let database = postgres.new_database();
    let url = postgres.url(APP_ROLE, &database);
    fill(&RawConnection::postgres(&url).expect("it connects"));
    let folder = temp_dir();
    let run = run_child(child(test, "alone", &[("PROJECT_URL", &url)]).current_dir(folder.path()));
    assert_eq!(printed(&run), expected("from_supabase"));
    postgres.drop_database(&database);
}

#[test]
fn the_program_copies_a_project_and_its_users_sign_in() {
    let test = name_of(&the_program_copies_a_project_and_its_users_sign_in);
    if role().is_some() {
        return print_all(move_from_supabase::run);
    }
    let Some(project) = SupabaseProject::new() else { return };
    let folder = temp_dir();
    project.write_files(&folder.path().join("storage"));
    let url = project.url();
    let run = run_child(child(test, "alone", &[("PROJECT_URL", &url)]).current_dir(folder.path()));
    assert_eq!(printed(&run), expected("move_from_supabase"));
}

#[test]
fn the_program_and_the_guide_have_the_same_query() {
    let read =
        |path: &str| fs::read_to_string(workspace().join(path)).expect("the file is there").replace("\r\n", "\n");
    let program = read("docs/examples/rust/from_supabase.rs");
    let query = program.split("const QUERY: &str = \"\n").nth(1).and_then(|rest| rest.split("\";").next());
    let query = query.expect("the program has the query");
    assert!(query.contains("encrypted_password"));
    assert!(
        read("core/src/postgres_guide.md").contains(query),
        "core/src/postgres_guide.md has another query than\n{query}"
    );
}
