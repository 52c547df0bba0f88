//! `users`: lists, adds, exports and deletes users, sets passwords, and ends sessions.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use townsquare::{
    ErrorKind, Uuid,
    auth::{SessionInfo, User},
    blocking::Client,
};

use super::files::{Bucket, PAGE, buckets};
use crate::{context::Context, failure::Failure, output::note, secret_input::new_password, settings::IfMissing};

/// List, add, export and delete users; set passwords; list and end sessions.
///
/// A password is the first line of the standard input. If that has none, it is the variable TOWNSQUARE_PASSWORD; without the variable
/// it is typed on the terminal.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: UsersCommand,
}

#[derive(Debug, Subcommand)]
enum UsersCommand {
    /// List the users by id. JSON: `users`.
    List {
        /// Number of users. Default: all.
        #[arg(long, short = 'n', value_name = "NUMBER")]
        limit: Option<usize>,
    },
    /// Add a user with a password. JSON: the user.
    Add {
        /// The e-mail address.
        email: String,
    },
    /// Set the password of a user, and end every session of the user. JSON: the user.
    Password {
        /// The id or the e-mail address.
        user: String,
    },
    /// List the sessions of a user that have not ended, the latest first, or end them. JSON: `sessions`; with --end or --end-all
    /// `ended`, their number.
    Sessions {
        /// The id or the e-mail address.
        user: String,
        /// End the session with this id. Its tokens are refused from then on.
        #[arg(long, value_name = "ID", conflicts_with = "end_all")]
        end: Option<Uuid>,
        /// End every session of the user, and the user's signed URLs.
        #[arg(long)]
        end_all: bool,
    },
    /// Write what the database has about a user, as JSON lines: the user, the linked identity keys, the user's spaces with their
    /// fidgets, and what is known about the user's files, also those in the user's spaces and private folders. `files get` writes a
    /// file.
    Export {
        /// The id or the e-mail address.
        user: String,
    },
    /// Delete a user with the user's spaces, fidgets and files. Asks first. JSON: the user.
    Delete {
        /// The id or the e-mail address.
        user: String,
    },
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let if_missing = match arguments.command {
        UsersCommand::Add { .. } => IfMissing::Create,
        UsersCommand::List { .. }
        | UsersCommand::Export { .. }
        | UsersCommand::Sessions { end: None, end_all: false, .. } => IfMissing::FailReadOnly,
        _ => IfMissing::Fail,
    };
    // Before the database opens: nobody holds it while a password is typed.
    let password = match arguments.command {
        UsersCommand::Add { .. } | UsersCommand::Password { .. } => new_password()?,
        _ => String::new(),
    };
    context.with_client(if_missing, |client| match &arguments.command {
        UsersCommand::List { limit } => list(client, limit.unwrap_or(usize::MAX), context),
        UsersCommand::Add { email } => {
            let user = client.auth().sign_up(email, &password)?;
            write(&user, "added", context)
        }
        UsersCommand::Password { user } => {
            let user = find(client, user)?;
            client.auth().set_password(user.id, &password)?;
            write(&user, "has the new password", context)
        }
        UsersCommand::Sessions { user, end, end_all } => {
            let user = find(client, user)?;
            match end {
                Some(session) => end_one(client, &user, *session, context),
                None if *end_all => write_ended(client.auth().end_sessions(user.id)?, &user, context),
                None => list_sessions(client, &user, context),
            }
        }
        UsersCommand::Export { user } => export(client, &find(client, user)?, context),
        UsersCommand::Delete { user } => {
            let user = find(client, user)?;
            context.confirm(&format!("Delete {} with all spaces and files?", user.email))?;
            client.auth().delete_user(user.id)?;
            write(&user, "deleted", context)
        }
    })
}

fn list(client: &Client, limit: usize, context: &Context) -> Result<(), Failure> {
    let row = |user: &User| {
        let verified = user.email_verified_at.map_or_else(|| "-".to_owned(), |time| format!("{time:.0}"));
        vec![user.id.to_string(), user.email.clone(), format!("{:.0}", user.created_at), verified]
    };
    let mut list = context.output.list("users", &["id", "e-mail", "created", "verified"]);
    let (mut left, mut last) = (limit, None);
    while left > 0 {
        let size = u32::try_from(left).map_or(PAGE, |left| left.min(PAGE));
        let page = client.auth().list_users(size, last)?;
        if page.is_empty() {
            break;
        }
        left -= page.len();
        last = page.last().map(|user| user.id);
        list.page(&page, row)?;
    }
    list.end()
}

/// The user with an id or an address.
fn find(client: &Client, user: &str) -> Result<User, Failure> {
    let missing = || Failure::not_found(format!("There is no user {user:?}"), "`townsquare users list` lists them.");
    let Ok(id) = user.parse::<Uuid>() else {
        return client.auth().find_user(user)?.ok_or_else(missing);
    };
    // The page after the id before this one begins with it.
    let before = id.as_u128().checked_sub(1).map(Uuid::from_u128);
    let found = client.auth().list_users(1, before)?.into_iter().next();
    found.filter(|user| user.id == id).ok_or_else(missing)
}

fn write(user: &User, what: &str, context: &Context) -> Result<(), Failure> {
    if context.output.is_json {
        return context.output.json(&json!(user));
    }
    context.output.line(&user.id.to_string())?;
    note(&format!("{} {what}.", user.email));
    Ok(())
}

fn list_sessions(client: &Client, user: &User, context: &Context) -> Result<(), Failure> {
    let row = |session: &SessionInfo| {
        let SessionInfo { id, created_at, refreshed_at, expires_at, .. } = session;
        vec![id.to_string(), format!("{created_at:.0}"), format!("{refreshed_at:.0}"), format!("{expires_at:.0}")]
    };
    let mut list = context.output.list("sessions", &["id", "created", "refreshed", "expires"]);
    list.page(&client.auth().sessions_of(user.id)?, row)?;
    list.end()
}

fn end_one(client: &Client, user: &User, session: Uuid, context: &Context) -> Result<(), Failure> {
    let ended = client.auth().end_session(user.id, session).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::not_found(
            format!("{} has no session {session}", user.email),
            "`townsquare users sessions USER` lists them.",
        ),
        _ => error.into(),
    });
    ended.and_then(|()| write_ended(1, user, context))
}

fn write_ended(ended: u64, user: &User, context: &Context) -> Result<(), Failure> {
    if context.output.is_json {
        return context.output.json(&json!({ "ended": ended }));
    }
    note(&format!("{ended} {} of {} ended.", if ended == 1 { "session" } else { "sessions" }, user.email));
    Ok(())
}

fn export(client: &Client, user: &User, context: &Context) -> Result<(), Failure> {
    let line = |table: &str, row: Value| context.output.json_line(&json!({ "table": table, "row": row }));
    line("users", json!(user))?;
    let keys = client.auth().identities_of(user.id)?;
    for key in &keys {
        line("identities", json!({ "public_key": key, "user_id": user.id }))?;
    }
    let mut spaces = BTreeSet::new();
    for space in client.spaces().get_user_spaces(user.id)? {
        spaces.insert(space.space.id.to_string());
        line("spaces", json!(space.space))?;
        for fidget in &space.fidgets {
            line("fidgets", json!(fidget))?;
        }
    }
    let id = user.id.to_string();
    for Bucket { name, is_private } in buckets(context)? {
        for file in client.storage().iter(&name, "", PAGE) {
            let file = file?;
            let folder = file.path.split('/').next().unwrap_or_default();
            let is_in_folder = match &*name {
                "spaces" => spaces.contains(folder),
                _ => is_private && (folder == id || keys.iter().any(|key| key == folder)),
            };
            if is_in_folder || file.owner_id == Some(user.id) {
                line("files", json!(file))?;
            }
        }
    }
    Ok(())
}
