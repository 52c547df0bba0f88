//! Communities: their configuration, their domains, and the spaces registered with them (SPEC 2.2 to 2.4, 4.3).
//!
//! Invariant: each function is the core's method of the same name, with nothing before it but reading the arguments.

use townsquare::{Communities, Operation, blocking::wait};

use crate::{
    boundary::{act, produce_if_any, produce_if_wanted},
    client::tsq_client,
    community_config::tsq_community_config,
    community_domain::tsq_community_domain,
    community_patch::tsq_community_patch,
    error::{Failure, tsq_error},
    handle, id, json_text,
    space_registration::{tsq_new_registration, tsq_space_registration},
    status::tsq_status,
    structs,
    text::{self, Terminated, tsq_str, tsq_string},
};

/// # Safety
/// `client` is NULL or lives for `'a`.
unsafe fn communities<'a>(client: *const tsq_client) -> Result<&'a Communities, Failure> {
    // SAFETY: the caller's promise, passed on.
    Ok(unsafe { handle::required(client, "client") }?.inner().communities())
}

/// Inserts a community's configuration, or updates the one with that id; the service only.
///
/// Borrows all; returns the row as it is now owned in `out`, which may be NULL. Fails with `TSQ_FIELD_MISSING` for a new
/// row without its four required configurations, `TSQ_INVALID_INPUT` (also for an id of more than 50 characters),
/// `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for anybody but the service, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_save_community_config(
    client: *const tsq_client,
    community_id: tsq_str,
    patch: *const tsq_community_patch,
    out: *mut *mut tsq_community_config,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::SaveCommunityConfig), out, err, || {
            let (communities, id) = (communities(client)?, text::required(community_id, "community_id")?);
            let patch = structs::required(patch, "patch", |patch: &tsq_community_patch| patch.read())?;
            Ok(wait(communities.save_community_config(id, patch))?.into())
        })
    }
}

/// The published configuration of a community as its clients read it: a JSON object with the keys `brand`, `assets`,
/// `community`, `fidgets`, `navigation` and `ui`.
///
/// Borrows all; returns owned in `out`: NULL, whose view is the absent text, when nothing is published. Fails with
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_get_active_community_config(
    client: *const tsq_client,
    community_id: tsq_str,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_any(Some(Operation::GetActiveCommunityConfig), out, err, || {
            let (communities, id) = (communities(client)?, text::required(community_id, "community_id")?);
            wait(communities.get_active_community_config(id))?.map(|config| text::json(&config)).transpose()
        })
    }
}

/// Sets a community's domain of a type in place of the one it had; the service only. The domain is stored normalised:
/// trimmed, in lower case, without scheme, port, path and a leading `www.`. `domain_type` is `blank_subdomain` or
/// `custom`.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_ALREADY_EXISTS` for a domain that is
/// taken, `TSQ_REFERENCE_MISSING` for an unknown community, `TSQ_INVALID_INPUT`, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for
/// anybody but the service, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_save_community_domain(
    client: *const tsq_client,
    community_id: tsq_str,
    domain: tsq_str,
    domain_type: tsq_str,
    out: *mut *mut tsq_community_domain,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::SaveCommunityDomain), out, err, || {
            let (communities, id) = (communities(client)?, text::required(community_id, "community_id")?);
            let domain = text::required(domain, "domain")?;
            let domain_type = text::required(domain_type, "domain_type")?.parse()?;
            Ok(wait(communities.save_community_domain(id, domain, domain_type))?.into())
        })
    }
}

/// Takes a domain away from its community; the service only.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` for a domain that nobody has, `TSQ_INVALID_INPUT`, `TSQ_UNAUTHORIZED` or
/// `TSQ_FORBIDDEN` for anybody but the service, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_delete_community_domain(
    client: *const tsq_client,
    domain: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        act(Some(Operation::DeleteCommunityDomain), err, || {
            let communities = communities(client)?;
            Ok(wait(communities.delete_community_domain(text::required(domain, "domain")?))?)
        })
    }
}

/// Sets a community's navigation and nothing else of it. `navigation_config` is any JSON, as text; absent, it clears.
///
/// Borrows all; returns the row as it is now owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` for an unknown
/// community, `TSQ_INVALID_INPUT`, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for callers who may not, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_update_navigation(
    client: *const tsq_client,
    community_id: tsq_str,
    navigation_config: tsq_str,
    out: *mut *mut tsq_community_config,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::UpdateNavigation), out, err, || {
            let (communities, id) = (communities(client)?, text::required(community_id, "community_id")?);
            let navigation = json_text::optional(navigation_config, "navigation_config")?;
            Ok(wait(communities.update_navigation(id, navigation))?.into())
        })
    }
}

/// The id of the community that answers at a host, as an HTTP `Host` header has it: by its domain, or by its own id.
///
/// Borrows all; returns owned in `out`: NULL, whose view is the absent text, when nothing published answers there. Fails
/// with `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_resolve_community(
    client: *const tsq_client,
    host: tsq_str,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_any(Some(Operation::ResolveCommunity), out, err, || {
            let communities = communities(client)?;
            Ok(wait(communities.resolve_community(text::required(host, "host")?))?.map(Terminated::new))
        })
    }
}

/// Registers a space, once; the service or the space's owner.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_ALREADY_EXISTS` for a space that is
/// registered, `TSQ_FIELD_MISSING` without a name, `TSQ_FORBIDDEN` for somebody else's space, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_register_space(
    client: *const tsq_client,
    registration: *const tsq_new_registration,
    out: *mut *mut tsq_space_registration,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::RegisterSpace), out, err, || {
            let communities = communities(client)?;
            let read = |registration: &tsq_new_registration| registration.read();
            let registration = structs::required(registration, "registration", read)?;
            Ok(wait(communities.register_space(registration))?.into())
        })
    }
}

/// The registration of a space.
///
/// Borrows all; returns owned in `out`: NULL when the space is not registered. Fails with `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_get_space_registration(
    client: *const tsq_client,
    space_id: tsq_str,
    out: *mut *mut tsq_space_registration,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_any(Some(Operation::GetSpaceRegistration), out, err, || {
            let communities = communities(client)?;
            let found = wait(communities.get_space_registration(id::required(space_id, "space_id")?))?;
            Ok(found.map(Into::into))
        })
    }
}
