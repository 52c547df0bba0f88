//! The spaces, and one space with its fidgets and files.

use maud::{Markup, html};
use townsquare::{
    Uuid,
    spaces::{Fidget, FidgetCursor, Space},
    storage::ListFiles,
};

use super::{
    Admin, files,
    page::{
        MOST_SEARCHED, Page, ROWS, contains_in_any_case, facts, find_form, json, next_link, or_none, owner_link,
        read_rows, search_rows, table, text, time,
    },
    page_error::PageError,
    parameters::{Parameters, id},
};

/// The bucket with the files of spaces.
const BUCKET: &str = "spaces";

pub(super) async fn list(admin: &Admin, query: &Parameters) -> Result<Page, PageError> {
    let read = |limit, after| admin.client.spaces().list_spaces(limit, after);
    let wanted = query.get("find").unwrap_or_default().trim();
    // The page of the space with this id.
    if wanted.parse::<Uuid>().is_ok() {
        return space(admin, wanted, query).await;
    }
    let form = find_form(&admin.at("/spaces", &[]), "Id or a part of the name", wanted);
    if !wanted.is_empty() {
        let part = wanted.to_lowercase();
        let is_match = |space: &Space| contains_in_any_case(&space.name, &part);
        let found = search_rows(MOST_SEARCHED, read, |space| space.id, is_match).await?;
        let body = html! { (form) (rows(admin, &found.rows)) (found.note("The id")) };
        return Ok(Page::new("Spaces", format!("Spaces with {}", text(wanted)), body));
    }
    let (spaces, next) = read_rows(query.id("after")?, read, |space| space.id).await?;
    let body = html! {
        (form)
        (rows(admin, &spaces))
        @if let Some(last) = next { (next_link(&admin.at("/spaces", &[]), &[("after", &last.to_string())])) }
    };
    Ok(Page::new("Spaces", "Spaces", body))
}

fn rows(admin: &Admin, spaces: &[Space]) -> Markup {
    let rows = spaces.iter().map(|space| {
        vec![
            html! { a href=(admin.at(&format!("/spaces/{}", space.id), &[])) { (text(&space.name)) } },
            html! { code { (space.id) } },
            html! { (if space.is_public { "public" } else { "private" }) },
            owner_link(admin, space.owner_id),
            time(space.updated_at),
        ]
    });
    table(&["Name", "Id", "Access", "Owner", "Updated"], rows)
}

pub(super) async fn space(admin: &Admin, space_id: &str, query: &Parameters) -> Result<Page, PageError> {
    let client = &admin.client;
    let space = client.spaces().get_space(id(space_id)?).await?;
    let after = query.id("after")?.map(FidgetCursor::from);
    let read = |limit, after| client.fidgets().get_space_fidgets_after(space.id, limit, after);
    let (fidgets, next) = read_rows(after, read, |fidget| FidgetCursor::from(fidget)).await?;
    let next = next.and(fidgets.last());
    let prefix = format!("{}/", space.id);
    let found = client.storage().list(BUCKET, ListFiles::with_prefix(&*prefix).limit(ROWS)).await?;
    let row = |fidget: &Fidget| {
        vec![
            html! { (text(&fidget.kind)) },
            html! { code { (fidget.id) } },
            or_none(fidget.position.as_ref(), json),
            or_none(fidget.config.as_ref(), json),
            time(fidget.updated_at),
        ]
    };
    let path = admin.at(&format!("/spaces/{}", space.id), &[]);
    let body = html! {
        (facts(&[
            ("Id", html! { code { (space.id) } }),
            ("Access", html! { (if space.is_public { "public" } else { "private" }) }),
            ("Owner", owner_link(admin, space.owner_id)),
            ("Description", or_none(space.description.as_deref(), |description| html! { (text(description)) })),
            ("Created", time(space.created_at)),
            ("Updated", time(space.updated_at)),
        ]))
        h2 { "Fidgets" }
        (table(&["Type", "Id", "Position", "Config", "Updated"], fidgets.iter().map(row)))
        @if let Some(last) = next { (next_link(&path, &[("after", &last.id.to_string())])) }
        h2 { "Files" }
        (files::short_list(admin, BUCKET, &prefix, &found))
    };
    Ok(Page::new("Spaces", space.name, body))
}
