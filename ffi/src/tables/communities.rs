//! Operations on communities: configurations, domains and registered spaces (SPEC 2.2 to 2.4, 4.3).
//!
//! Invariant: each function is the core's method of the same name, after it converted the arguments.

use townsquare::{Operation, blocking};

use crate::{
    boundary::{
        Failure, Terminated, argument, call_handle, call_optional_handle, call_unit, call_wanted_handle, input::input,
        json, list, record, tsq_error, tsq_status, tsq_str, tsq_string,
    },
    client::{self, tsq_client},
    tables::{
        community_config::{tsq_community_config, tsq_community_config_list},
        community_domain::{tsq_community_domain, tsq_community_domain_list},
        community_patch::tsq_community_patch,
        space_registration::{tsq_new_registration, tsq_space_registration, tsq_space_registration_list},
    },
};

/// # Safety
/// `client` is NULL or lives for `'a`.
unsafe fn communities<'a>(client: *const tsq_client) -> Result<blocking::Communities<'a>, Failure> {
    // SAFETY: the caller's promise, passed on.
    Ok(unsafe { client::usable(client) }?.communities())
}

/// Creates the configuration of a community, or updates it when `community_id` has one. The service only.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_FIELD_MISSING` for a new row without
/// its four required configurations and when a bool is cleared, `TSQ_INVALID_INPUT` (also for an empty id, and for one of more than
/// 50 characters), `TSQ_TOO_LARGE`, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for callers other than the service, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_save_community_config(
    client: *const tsq_client,
    community_id: tsq_str,
    patch: *const tsq_community_patch,
    out: *mut *mut tsq_community_config,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::SaveCommunityConfig), out, err, || {
            let (communities, id) = (communities(client)?, argument::text(community_id, "community_id")?);
            let patch = input(patch, "patch", |patch: &tsq_community_patch| patch.read())?;
            Ok(record(communities.save_community_config(id, patch)?))
        })
    }
}

/// Reads the published configuration of a community: a JSON object with the keys `brand`, `assets`, `community`,
/// `fidgets`, `navigation` and `ui`.
///
/// Borrows all; returns owned in `out`: NULL when nothing is published. Fails with `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_get_active_community_config(
    client: *const tsq_client,
    community_id: tsq_str,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_optional_handle(Some(Operation::GetActiveCommunityConfig), out, err, || {
            let (communities, id) = (communities(client)?, argument::text(community_id, "community_id")?);
            communities.get_active_community_config(id)?.map(|config| json(&config)).transpose()
        })
    }
}

/// Sets the domain of a community, in place of an earlier one of the same type. The service only. The domain is stored
/// normalised: trimmed, in lower case, without scheme, port, path and a leading `www.`. `domain_type` is
/// `blank_subdomain` or `custom`.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_ALREADY_EXISTS` for a domain that is
/// taken, `TSQ_REFERENCE_MISSING` for an unknown community, `TSQ_INVALID_INPUT`, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN`
/// for callers other than the service, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_save_community_domain(
    client: *const tsq_client,
    community_id: tsq_str,
    domain: tsq_str,
    domain_type: tsq_str,
    out: *mut *mut tsq_community_domain,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::SaveCommunityDomain), out, err, || {
            let (communities, id) = (communities(client)?, argument::text(community_id, "community_id")?);
            let domain = argument::text(domain, "domain")?;
            let domain_type = argument::text(domain_type, "domain_type")?.parse()?;
            Ok(record(communities.save_community_domain(id, domain, domain_type)?))
        })
    }
}

/// Deletes a domain. A row with exactly this text comes first, then the normal form: a row that another program wrote may have another
/// form. The service only.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` for an unknown domain, `TSQ_INVALID_INPUT`, `TSQ_UNAUTHORIZED` or
/// `TSQ_FORBIDDEN` for callers other than the service, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_delete_community_domain(
    client: *const tsq_client,
    domain: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::DeleteCommunityDomain), err, || {
            Ok(communities(client)?.delete_community_domain(argument::text(domain, "domain")?)?)
        })
    }
}

/// Sets the navigation of a community. `navigation_config` is JSON as text; the absent text clears the column. Allowed
/// for the service and for users with a linked identity key of the community (`tsq_auth_link_identity`). A user gets the row
/// without what only the service reads: keys and address are absent, and `custom_domain_authorized` is false.
///
/// Borrows all; returns the changed row owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` for an unknown
/// community, `TSQ_INVALID_INPUT`, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other callers, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_update_navigation(
    client: *const tsq_client,
    community_id: tsq_str,
    navigation_config: tsq_str,
    out: *mut *mut tsq_community_config,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::UpdateNavigation), out, err, || {
            let (communities, id) = (communities(client)?, argument::text(community_id, "community_id")?);
            let navigation = argument::optional_json(navigation_config, "navigation_config")?;
            Ok(record(communities.update_navigation(id, navigation)?))
        })
    }
}

/// Finds the id of the community of a host: the value of an HTTP `Host` header. A community is found by its domain or
/// by its own id.
///
/// Borrows all; returns owned in `out`: NULL when no published community matches. Fails with `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_resolve_community(
    client: *const tsq_client,
    host: tsq_str,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_optional_handle(Some(Operation::ResolveCommunity), out, err, || {
            Ok(communities(client)?.resolve_community(argument::text(host, "host")?)?.map(Terminated::new))
        })
    }
}

/// Registers a space, once. Allowed for the service and the space's owner. A user may name only a linked identity key, and no
/// `fid` and no `signature`: readers take them for proven, so the service checks and stores them.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_ALREADY_EXISTS` for a registered
/// space, `TSQ_FIELD_MISSING` without a name, `TSQ_FORBIDDEN` for a space that the caller does not own,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_register_space(
    client: *const tsq_client,
    registration: *const tsq_new_registration,
    out: *mut *mut tsq_space_registration,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::RegisterSpace), out, err, || {
            let communities = communities(client)?;
            let read = |registration: &tsq_new_registration| registration.read();
            let registration = input(registration, "registration", read)?;
            Ok(record(communities.register_space(registration)?))
        })
    }
}

/// Reads the registration of a space.
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
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_optional_handle(Some(Operation::GetSpaceRegistration), out, err, || {
            let communities = communities(client)?;
            let found = communities.get_space_registration(argument::id(space_id, "space_id")?)?;
            Ok(found.map(record))
        })
    }
}

/// Lists the `limit` community configurations, published or not, that follow `after`, by id; the first ones when `after` is absent. For the service. A page has
/// fewer rows when they take more than 64 MiB of memory: only an empty page is the last one.
///
/// Borrows all (`after` is the id of the last row of the page before); returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other
/// callers, `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_list_community_configs(
    client: *const tsq_client,
    limit: u32,
    after: tsq_str,
    out: *mut *mut tsq_community_config_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::ListCommunityConfigs), out, err, || {
            Ok(list(communities(client)?.list_community_configs(limit, argument::optional_id(after, "after")?)?))
        })
    }
}

/// Lists the `limit` domains of communities that follow `after`, by id; the first ones when `after` is absent. For the service. A page has
/// fewer rows when they take more than 64 MiB of memory: only an empty page is the last one.
///
/// Borrows all (`after` is the id of the last row of the page before); returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other
/// callers, `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_list_community_domains(
    client: *const tsq_client,
    limit: u32,
    after: tsq_str,
    out: *mut *mut tsq_community_domain_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::ListCommunityDomains), out, err, || {
            Ok(list(communities(client)?.list_community_domains(limit, argument::optional_id(after, "after")?)?))
        })
    }
}

/// Lists the `limit` registrations of spaces that follow `after`, by id; the first ones when `after` is absent. For the service. A page has
/// fewer rows when they take more than 64 MiB of memory: only an empty page is the last one.
///
/// Borrows all (`after` is the space of the last row of the page before); returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other
/// callers, `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_communities_list_space_registrations(
    client: *const tsq_client,
    limit: u32,
    after: tsq_str,
    out: *mut *mut tsq_space_registration_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::ListSpaceRegistrations), out, err, || {
            Ok(list(communities(client)?.list_space_registrations(limit, argument::optional_id(after, "after")?)?))
        })
    }
}
