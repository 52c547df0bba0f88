//! The communities: configurations, domains and registered spaces.

use maud::{Markup, html};
use townsquare::{
    Uuid,
    communities::{CommunityConfig, CommunityDomain, SpaceRegistration},
};

use super::{
    Admin,
    page::{Page, json, next_link, or_none, read_rows, table, text, time},
    page_error::PageError,
    parameters::Parameters,
};

pub(super) async fn page(admin: &Admin, query: &Parameters) -> Result<Page, PageError> {
    let communities = admin.client.communities();
    let read = |limit, after| communities.list_community_configs(limit, after);
    let (configs, more_configs) = read_rows(query.id("configs_after")?, read, |config| config.id).await?;

    let read = |limit, after| communities.list_community_domains(limit, after);
    let (domains, more_domains) = read_rows(query.id("domains_after")?, read, |domain| domain.id).await?;

    let read = |limit, after| communities.list_space_registrations(limit, after);
    let (registrations, more_registrations) =
        read_rows(query.id("registrations_after")?, read, |registration| registration.space_id).await?;

    let next = |name: &str, after: Option<Uuid>| {
        after.map(|after| next_link(&admin.at("/communities", &[]), &[(name, &after.to_string())]))
    };
    let body = html! {
        h2 { "Configurations" }
        (table(&["Community", "State", "Own domain", "E-mail of the admin", "Parts", "Updated"], configs.iter().map(config)))
        @if let Some(link) = next("configs_after", more_configs) { (link) }
        h2 { "Domains" }
        (table(&["Domain", "Type", "Community", "Updated"], domains.iter().map(domain)))
        @if let Some(link) = next("domains_after", more_domains) { (link) }
        h2 { "Registered spaces" }
        (table(&["Space", "Name", "Type", "Fid", "Identity key", "Time"], registrations.iter().map(|row| registration(admin, row))))
        @if let Some(link) = next("registrations_after", more_registrations) { (link) }
    };
    Ok(Page::new("Communities", "Communities", body))
}

fn config(config: &CommunityConfig) -> Vec<Markup> {
    let parts = [
        ("brand", Some(&config.brand_config)),
        ("assets", Some(&config.assets_config)),
        ("community", Some(&config.community_config)),
        ("fidgets", Some(&config.fidgets_config)),
        ("navigation", config.navigation_config.as_ref()),
        ("ui", config.ui_config.as_ref()),
    ];
    vec![
        html! { (text(&config.community_id)) },
        html! { (if config.is_published { "published" } else { "draft" }) },
        html! { (if config.custom_domain_authorized { "allowed" } else { "not allowed" }) },
        or_none(config.admin_email.as_deref(), |email| html! { (text(email)) }),
        html! { @for (name, part) in parts { @if let Some(part) = part { div { (name) ": " (json(part)) } } } },
        time(config.updated_at),
    ]
}

fn domain(domain: &CommunityDomain) -> Vec<Markup> {
    vec![
        html! { (text(&domain.domain)) },
        html! { (domain.domain_type.as_str()) },
        html! { (text(&domain.community_id)) },
        time(domain.updated_at),
    ]
}

fn registration(admin: &Admin, row: &SpaceRegistration) -> Vec<Markup> {
    vec![
        html! { a href=(admin.at(&format!("/spaces/{}", row.space_id), &[])) { code { (row.space_id) } } },
        html! { (text(&row.space_name)) },
        html! { (row.space_type.as_str()) },
        or_none(row.fid, |fid| html! { (fid) }),
        or_none(row.identity_public_key.as_deref(), |key| html! { code { (text(key)) } }),
        time(row.timestamp),
    ]
}
