//! The users, and one user with sessions, identity keys, spaces and private files.

use maud::{Markup, html};
use townsquare::{ErrorKind, Uuid, auth::User, storage::ListFiles};

use super::{
    Admin, files,
    page::{
        MOST_SEARCHED, Page, ROWS, contains_in_any_case, facts, find_form, next_link, or_none, read_rows, search_rows,
        table, text, time,
    },
    page_error::PageError,
    parameters::{Parameters, id},
};

/// The bucket in which each user and each identity key has a folder.
const PRIVATE: &str = "private";

pub(super) async fn list(admin: &Admin, query: &Parameters) -> Result<Page, PageError> {
    let auth = admin.client.auth();
    let read = |limit, after| auth.list_users(limit, after);
    let wanted = query.get("find").unwrap_or_default().trim();
    if wanted.parse::<Uuid>().is_ok() {
        return user(admin, wanted).await;
    }
    let form = find_form(&admin.at("/users", &[]), "Id or a part of the e-mail address", wanted);
    if !wanted.is_empty() {
        let part = wanted.to_lowercase();
        let is_match = |user: &User| contains_in_any_case(&user.email, &part);
        let mut found = search_rows(MOST_SEARCHED, read, |user| user.id, is_match).await?;
        // A search for a part may end before the user with just this address.
        if let Some(user) = auth.find_user(wanted).await?
            && found.rows.iter().all(|found| found.id != user.id)
        {
            found.rows.insert(0, user);
            found.rows.truncate(ROWS as usize);
        }
        let body = html! { (form) (rows(admin, &found.rows)) (found.note("The id or the whole address")) };
        return Ok(Page::new("Users", format!("Users with {}", text(wanted)), body));
    }
    let (users, next) = read_rows(query.id("after")?, read, |user| user.id).await?;
    let body = html! {
        (form)
        (rows(admin, &users))
        @if let Some(last) = next { (next_link(&admin.at("/users", &[]), &[("after", &last.to_string())])) }
    };
    Ok(Page::new("Users", "Users", body))
}

fn rows(admin: &Admin, users: &[User]) -> Markup {
    let rows = users.iter().map(|user| {
        vec![
            html! { a href=(admin.at(&format!("/users/{}", user.id), &[])) { (text(&user.email)) } },
            html! { code { (user.id) } },
            time(user.created_at),
            or_none(user.email_verified_at, time),
        ]
    });
    table(&["E-mail", "Id", "Created", "Verified"], rows)
}

pub(super) async fn user(admin: &Admin, user_id: &str) -> Result<Page, PageError> {
    let user = find(admin, id(user_id)?).await?;
    show(admin, &user.ok_or_else(|| PageError::not_found("There is no user with this id."))?).await
}

/// The user with an id.
async fn find(admin: &Admin, id: Uuid) -> Result<Option<User>, PageError> {
    // The page after the id before this one begins with it.
    let before = id.as_u128().checked_sub(1).map(Uuid::from_u128);
    let found = admin.client.auth().list_users(1, before).await?.into_iter().next();
    Ok(found.filter(|user| user.id == id))
}

async fn show(admin: &Admin, user: &User) -> Result<Page, PageError> {
    let (auth, spaces) = (admin.client.auth(), admin.client.spaces());
    let sessions = auth.sessions_of(user.id).await?;
    let sessions = sessions.iter().map(|session| {
        vec![
            html! { code { (session.id) } },
            time(session.created_at),
            time(session.refreshed_at),
            time(session.expires_at),
        ]
    });
    let keys = auth.identities_of(user.id).await?;
    // The library has no call for a page of the spaces of a user, nor one that leaves their fidgets out.
    let (spaces, are_too_large) = match spaces.get_user_spaces(user.id).await {
        Err(error) if error.kind() == ErrorKind::TooLarge => (Vec::new(), true),
        spaces => (spaces?, false),
    };
    let space_rows = spaces.iter().take(ROWS as usize).map(|space| {
        vec![
            html! { a href=(admin.at(&format!("/spaces/{}", space.id), &[])) { (text(&space.name)) } },
            html! { (if space.is_public { "public" } else { "private" }) },
            html! { (space.fidgets.len()) },
            time(space.updated_at),
        ]
    });
    // The files of a key are behind its link: a user may have many keys.
    let key_folder = |key: &str| admin.at(&format!("/files/{PRIVATE}"), &[("prefix", &format!("{key}/"))]);
    let prefix = format!("{}/", user.id);
    let private = admin.client.storage().list(PRIVATE, ListFiles::with_prefix(&*prefix).limit(ROWS)).await?;
    let body = html! {
        (facts(&[
            ("Id", html! { code { (user.id) } }),
            ("E-mail", html! { (text(&user.email)) }),
            ("Verified", or_none(user.email_verified_at, time)),
            ("Created", time(user.created_at)),
            ("Updated", time(user.updated_at)),
            ("Identity keys", html! {
                @if keys.is_empty() { span.none { "–" } }
                @for key in &keys { a.item href=(key_folder(key)) { code { (text(key)) } } " " }
            }),
        ]))
        h2 { "Sessions" }
        (table(&["Id", "Created", "Refreshed", "Expires"], sessions))
        h2 { "Spaces" }
        @if are_too_large {
            p { "The spaces have too many fidgets for one answer. Find them by their names under " a href=(admin.at("/spaces", &[])) { "Spaces" } "." }
        } @else {
            (table(&["Name", "Access", "Fidgets", "Updated"], space_rows))
        }
        @if spaces.len() > ROWS as usize { p { "The first " (ROWS) " of " (spaces.len()) "." } }
        h2 { "Private files" }
        (files::short_list(admin, PRIVATE, &prefix, &private))
        @if !keys.is_empty() { p { "The link of an identity key leads to the files of the key." } }
    };
    Ok(Page::new("Users", user.email.clone(), body))
}
