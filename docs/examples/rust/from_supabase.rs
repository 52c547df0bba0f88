//! Adopts the database of a Supabase project, with the passwords of its users.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

// ANCHOR: program
use std::{env, error::Error};

use sqlx::{Connection as _, PgConnection};
use townsquare::{Client, Config, Uuid, auth::NewCredential};

/// The users who may sign in with a password.
const QUERY: &str = "
SELECT users.id::text AS user_id, auth_users.encrypted_password AS password_hash
FROM auth.users AS auth_users JOIN public.users AS users ON users.id = auth_users.id
WHERE auth_users.encrypted_password <> '' AND auth_users.deleted_at IS NULL AND auth_users.email_confirmed_at IS NOT NULL
    AND (auth_users.banned_until IS NULL OR auth_users.banned_until <= now())
ORDER BY users.id
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // As the owner of the tables: in a Supabase project, the role `postgres`.
    let url = env::var("PROJECT_URL")?;
    let client = Client::open(Config::new().data_dir("town").database_url(&url).adopt(true)).await?;

    let mut project = PgConnection::connect(&url).await?;
    let rows: Vec<(String, String)> = sqlx::query_as(QUERY).fetch_all(&mut project).await?;
    let service = client.as_service();
    for portion in rows.chunks(10_000) {
        let mut credentials = Vec::new();
        for (user, hash) in portion {
            credentials.push(NewCredential::of_user(Uuid::parse_str(user)?, hash));
        }
        let report = service.auth().import_credentials(credentials).await?;
        println!("imported: {}", report.imported);
    }

    // The old password signs in. From now on it is stored as an Argon2id hash.
    let session = client.auth().sign_in("ann@town.example", "correct horse").await?;
    println!("signed in: {}", session.user.email);
    client.close().await;
    Ok(())
}
// ANCHOR_END: program

/// Runs the program in the test of the book.
pub(super) fn run() -> Result<(), Box<dyn Error>> {
    main()
}
