//! Domains of communities (SPEC 2.3, UPSTREAM 4).

use std::time::Duration;

use townsquare::{Change, CommunityPatch, DomainType, ErrorKind, blocking::wait};
use townsquare_tests::{
    on_both_engines,
    store::{Store, assert_fails},
    town::morning,
};

on_both_engines!(
    a_domain_is_stored_normalised,
    a_community_has_one_domain_of_each_type,
    a_domain_belongs_to_one_community,
    a_domain_needs_a_community_and_a_name,
    a_deleted_domain_leads_nowhere,
    a_deleted_community_takes_its_domains_along,
    a_host_resolves_by_domain_then_by_id,
    only_what_is_published_answers,
    the_table_takes_two_types_and_no_other,
);

fn save(store: &Store, id: &str, domain: &str, kind: DomainType) -> townsquare::Result<townsquare::CommunityDomain> {
    wait(store.service.communities().save_community_domain(id, domain, kind))
}

fn resolve(store: &Store, host: &str) -> Option<String> {
    wait(store.client.communities().resolve_community(host)).expect("an answer")
}

fn a_domain_is_stored_normalised(store: &Store) {
    store.community("town");
    for spelling in
        ["Town.Example", "  www.town.example ", "https://town.example:8443/a/b?c", "HTTP://WWW.TOWN.EXAMPLE/"]
    {
        let saved = save(store, "town", spelling, DomainType::Custom).expect(spelling);
        assert_eq!((saved.domain.as_str(), saved.community_id.as_str()), ("town.example", "town"), "{spelling}");
        assert_eq!(resolve(store, spelling).as_deref(), Some("town"), "{spelling}");
    }
    let twice = save(store, "town", "www.www.town.example", DomainType::Custom).expect("saved");
    assert_eq!(twice.domain, "www.town.example", "one leading www. is dropped");
}

fn a_community_has_one_domain_of_each_type(store: &Store) {
    store.community("town");
    let first = save(store, "town", "one.example", DomainType::Custom).expect("saved");
    assert_eq!((first.domain_type, first.created_at, first.updated_at), (DomainType::Custom, morning(), morning()));
    let blank = save(store, "town", "blank.example", DomainType::BlankSubdomain).expect("saved");
    assert_ne!(blank.id, first.id);
    store.hands.advance(Duration::from_secs(1));
    let second = save(store, "town", "two.example", DomainType::Custom).expect("replaced");
    assert_eq!((second.id, second.created_at), (first.id, first.created_at), "the row stays");
    assert!(second.updated_at > first.updated_at);
    assert_eq!(store.outside.count("community_domains"), 2);
    assert_eq!(resolve(store, "one.example"), None);
    assert_eq!(resolve(store, "two.example").as_deref(), Some("town"));
    let again = save(store, "town", "two.example", DomainType::Custom).expect("its own again");
    assert!(again.updated_at > second.updated_at);
}

fn a_domain_belongs_to_one_community(store: &Store) {
    store.community("town");
    store.community("village");
    save(store, "town", "town.example", DomainType::Custom).expect("saved");
    save(store, "village", "village.example", DomainType::Custom).expect("saved");
    let sentence = "Save community domain failed: Record already exists";
    for kind in [DomainType::Custom, DomainType::BlankSubdomain] {
        let taken = save(store, "village", "www.TOWN.example", kind);
        let error = assert_fails(taken, ErrorKind::AlreadyExists, Some("23505"), sentence);
        assert_eq!((error.message(), error.is_retryable()), ("Record already exists", false));
    }
    // Nor twice by one community, under its other type.
    let taken = save(store, "town", "town.example", DomainType::BlankSubdomain);
    assert_fails(taken, ErrorKind::AlreadyExists, Some("23505"), sentence);
    assert_eq!(resolve(store, "town.example").as_deref(), Some("town"));
    assert_eq!(resolve(store, "village.example").as_deref(), Some("village"));
}

fn a_domain_needs_a_community_and_a_name(store: &Store) {
    let lost = save(store, "nowhere", "town.example", DomainType::Custom);
    let sentence = "Save community domain failed: Referenced record not found";
    assert_fails(lost, ErrorKind::ReferenceMissing, Some("23503"), sentence);
    store.community("town");
    for empty in ["", "  ", "https://", "www.", "https://www./x"] {
        let error = save(store, "town", empty, DomainType::Custom).expect_err(empty);
        assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, None), "{empty:?}: {error}");
        assert!(error.to_string().starts_with("Save community domain failed: "), "{error}");
    }
    assert_eq!(store.outside.count("community_domains"), 0);
}

fn a_deleted_domain_leads_nowhere(store: &Store) {
    store.community("town");
    save(store, "town", "town.example", DomainType::Custom).expect("saved");
    wait(store.service.communities().delete_community_domain("https://WWW.town.example/")).expect("deleted");
    assert_eq!(resolve(store, "town.example"), None);
    let again = wait(store.service.communities().delete_community_domain("town.example"));
    assert_fails(again, ErrorKind::NotFound, None, "Delete community domain failed: Record not found");
}

fn a_deleted_community_takes_its_domains_along(store: &Store) {
    for id in ["town", "village"] {
        store.community(id);
        save(store, id, &format!("{id}.example"), DomainType::Custom).expect("saved");
    }
    store.outside.run("DELETE FROM community_configs WHERE community_id = 'town'");
    let left = store.outside.rows("SELECT domain FROM community_domains");
    assert_eq!(left, [vec![Some("village.example".to_owned())]]);
}

fn a_host_resolves_by_domain_then_by_id(store: &Store) {
    store.community("town.example");
    store.community("village.example");
    assert_eq!(resolve(store, "WWW.Town.Example:443").as_deref(), Some("town.example"), "by its id");
    save(store, "village.example", "town.example", DomainType::Custom).expect("saved");
    assert_eq!(resolve(store, "town.example").as_deref(), Some("village.example"), "a domain comes before an id");
    assert_eq!(resolve(store, "village.example").as_deref(), Some("village.example"));
    for strange in ["", "nowhere.example", "example", "' OR 1=1 --", "%"] {
        assert_eq!(resolve(store, strange), None, "{strange:?}");
    }
}

fn only_what_is_published_answers(store: &Store) {
    store.community("town");
    save(store, "town", "town.example", DomainType::Custom).expect("saved");
    let mut patch = CommunityPatch::new();
    patch.is_published = Change::Set(false);
    wait(store.service.communities().save_community_config("town", patch)).expect("hidden");
    for host in ["town.example", "town"] {
        assert_eq!(resolve(store, host), None, "{host}");
        assert_eq!(wait(store.service.communities().resolve_community(host)).expect("an answer"), None, "{host}");
    }
}

fn the_table_takes_two_types_and_no_other(store: &Store) {
    let known: Vec<_> = DomainType::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(known, ["blank_subdomain", "custom"]);
    let error = "sheep".parse::<DomainType>().expect_err("no type");
    assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, Some("23514")));
    store.community("town");
    let insert = |kind: &str| {
        let values = format!("('town', '{kind}.example', '{kind}')");
        store
            .outside
            .try_rows(&format!("INSERT INTO community_domains (community_id, domain, domain_type) VALUES {values}"))
    };
    for kind in known {
        insert(kind).expect(kind);
    }
    for bad in ["sheep", "", "Custom"] {
        insert(bad).expect_err(bad);
    }
}
