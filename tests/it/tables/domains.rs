//! Domains of communities (SPEC 2.3, UPSTREAM 4).

use std::time::Duration;

use townsquare::{
    ErrorKind, Uuid,
    communities::{CommunityPatch, DomainType},
    spaces::Change,
};
use townsquare_tests::{
    on_both_engines,
    test_database::{TestDatabase, assert_fails},
};

fn save(
    db: &TestDatabase,
    id: &str,
    domain: &str,
    kind: DomainType,
) -> townsquare::Result<townsquare::communities::CommunityDomain> {
    db.service.communities().save_community_domain(id, domain, kind)
}

fn resolve(db: &TestDatabase, host: &str) -> Option<String> {
    db.client.communities().resolve_community(host).expect("an answer")
}

on_both_engines! {
    fn a_domain_is_stored_normalised(db: &TestDatabase) {
        db.community("town");
        for spelling in
            ["Town.Example", "  www.town.example ", "https://town.example:8443/a/b?c", "HTTP://WWW.TOWN.EXAMPLE/"]
        {
            let saved = save(db, "town", spelling, DomainType::Custom).expect(spelling);
            assert_eq!((saved.domain.as_str(), saved.community_id.as_str()), ("town.example", "town"), "{spelling}");
            assert_eq!(resolve(db, spelling).as_deref(), Some("town"), "{spelling}");
        }
        let twice = save(db, "town", "www.www.town.example", DomainType::Custom).expect("saved");
        assert_eq!(twice.domain, "www.town.example", "one leading www. is dropped");
    }

    fn an_internationalised_domain_resolves_in_both_forms(db: &TestDatabase) {
        db.community("town");
        let saved = save(db, "town", "www.M\u{fc}nchen.de.", DomainType::Custom).expect("saved");
        assert_eq!(saved.domain, "xn--mnchen-3ya.de");
        for host in ["m\u{fc}nchen.de", "xn--mnchen-3ya.de:443", "www.xn--mnchen-3ya.de."] {
            assert_eq!(resolve(db, host).as_deref(), Some("town"), "{host}");
        }
        let again = save(db, "town", "xn--mnchen-3ya.de", DomainType::Custom).expect("the same domain");
        assert_eq!(again.id, saved.id);
        db.service.communities().delete_community_domain("m\u{fc}nchen.de").expect("deleted");
        assert_eq!(resolve(db, "xn--mnchen-3ya.de"), None);
        db.community("m\u{fc}nchen");
        assert_eq!(resolve(db, "m\u{fc}nchen").as_deref(), Some("m\u{fc}nchen"), "the id of a community stays as it is");
    }

    fn a_community_has_one_domain_of_each_type(db: &TestDatabase) {
        db.community("town");
        let first = save(db, "town", "one.example", DomainType::Custom).expect("saved");
        assert_eq!(
            (first.domain_type, first.created_at, first.updated_at),
            (DomainType::Custom, db.now(), db.now())
        );
        let blank = save(db, "town", "blank.example", DomainType::BlankSubdomain).expect("saved");
        assert_ne!(blank.id, first.id);
        db.clock.advance(Duration::from_secs(1));
        let second = save(db, "town", "two.example", DomainType::Custom).expect("replaced");
        assert_eq!((second.id, second.created_at), (first.id, first.created_at), "the row stays");
        assert!(second.updated_at > first.updated_at);
        assert_eq!(db.raw.count("community_domains"), 2);
        assert_eq!(resolve(db, "one.example"), None);
        assert_eq!(resolve(db, "two.example").as_deref(), Some("town"));
        let again = save(db, "town", "two.example", DomainType::Custom).expect("its own again");
        assert!(again.updated_at > second.updated_at);
    }

    fn a_domain_belongs_to_one_community(db: &TestDatabase) {
        db.community("town");
        db.community("village");
        save(db, "town", "town.example", DomainType::Custom).expect("saved");
        save(db, "village", "village.example", DomainType::Custom).expect("saved");
        let sentence = "Save community domain failed: Record already exists";
        for kind in [DomainType::Custom, DomainType::BlankSubdomain] {
            let taken = save(db, "village", "www.TOWN.example", kind);
            let error = assert_fails(taken, ErrorKind::AlreadyExists, Some("23505"), sentence);
            assert_eq!((error.reason(), error.is_retryable()), (Some("community_domains.domain"), false));
        }
        // Nor by the same community with the other type.
        let taken = save(db, "town", "town.example", DomainType::BlankSubdomain);
        assert_fails(taken, ErrorKind::AlreadyExists, Some("23505"), sentence);
        assert_eq!(resolve(db, "town.example").as_deref(), Some("town"));
        assert_eq!(resolve(db, "village.example").as_deref(), Some("village"));
    }

    fn a_domain_needs_a_community_and_a_name(db: &TestDatabase) {
        let lost = save(db, "nowhere", "town.example", DomainType::Custom);
        let sentence = "Save community domain failed: Referenced record not found";
        assert_fails(lost, ErrorKind::ReferenceMissing, Some("23503"), sentence);
        db.community("town");
        for empty in ["", "  ", "https://", "www.", "https://www./x", "..", "::1"] {
            let error = save(db, "town", empty, DomainType::Custom).expect_err(empty);
            assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, None), "{empty:?}: {error}");
            assert!(error.to_string().starts_with("Save community domain failed: "), "{error}");
        }
        assert_eq!(db.raw.count("community_domains"), 0);
    }

    fn a_deleted_domain_does_not_resolve(db: &TestDatabase) {
        db.community("town");
        save(db, "town", "town.example", DomainType::Custom).expect("saved");
        db.service.communities().delete_community_domain("https://WWW.town.example/").expect("deleted");
        assert_eq!(resolve(db, "town.example"), None);
        let again = db.service.communities().delete_community_domain("town.example");
        assert_fails(again, ErrorKind::NotFound, None, "Delete community domain failed: Record not found");
    }

    /// As an import keeps the rows of other programs.
    fn a_domain_in_another_form_is_deleted_by_that_form(db: &TestDatabase) {
        let raw = |id: &str| db.raw.rows(&format!("SELECT domain FROM community_domains WHERE community_id = '{id}'"));
        let now = "'2026-01-02T03:04:05.000000Z'";
        for (form, normal) in [("M\u{dc}NCHEN.de", "m\u{fc}nchen.de"), ("Town.example", "town.example")] {
            for id in ["town", "village"] {
                db.community(id);
            }
            save(db, "town", normal, DomainType::Custom).expect("saved");
            db.raw.run(&format!(
                "INSERT INTO community_domains (id, community_id, domain, domain_type, created_at, updated_at)
                 VALUES ('{}', 'village', '{form}', 'custom', {now}, {now})",
                Uuid::new_v4()
            ));
            db.service.communities().delete_community_domain(form).expect("deleted");
            assert_eq!((raw("town").len(), raw("village").len()), (1, 0), "{form}");
            assert_eq!(resolve(db, normal).as_deref(), Some("town"));
            db.service.communities().delete_community_domain(form).expect("the normal form is left");
            assert_eq!(raw("town").len(), 0);
        }
    }

    fn a_domain_that_no_host_has_is_deleted(db: &TestDatabase) {
        db.community("town");
        for form in [".", "www.", ":"] {
            db.raw.run(&format!(
                "INSERT INTO community_domains (id, community_id, domain, domain_type, created_at, updated_at)
                 VALUES ('{}', 'town', '{form}', 'custom', '2026-01-02T03:04:05.000000Z', '2026-01-02T03:04:05.000000Z')",
                Uuid::new_v4()
            ));
            db.service.communities().delete_community_domain(form).expect("deleted");
            let again = db.service.communities().delete_community_domain(form);
            assert_fails(again, ErrorKind::NotFound, None, "Delete community domain failed: Record not found");
        }
    }

    fn deleting_a_community_deletes_its_domains(db: &TestDatabase) {
        for id in ["town", "village"] {
            db.community(id);
            save(db, id, &format!("{id}.example"), DomainType::Custom).expect("saved");
        }
        db.raw.run("DELETE FROM community_configs WHERE community_id = 'town'");
        let left = db.raw.rows("SELECT domain FROM community_domains");
        assert_eq!(left, [vec![Some("village.example".to_owned())]]);
    }

    fn a_host_resolves_by_domain_then_by_id(db: &TestDatabase) {
        db.community("town.example");
        db.community("village.example");
        assert_eq!(resolve(db, "WWW.Town.Example:443").as_deref(), Some("town.example"), "by its id");
        save(db, "village.example", "town.example", DomainType::Custom).expect("saved");
        assert_eq!(resolve(db, "town.example").as_deref(), Some("village.example"), "a domain comes before an id");
        assert_eq!(resolve(db, "village.example").as_deref(), Some("village.example"));
        for strange in ["", "nowhere.example", "example", "' OR 1=1 --", "%"] {
            assert_eq!(resolve(db, strange), None, "{strange:?}");
        }
    }

    fn only_published_communities_resolve(db: &TestDatabase) {
        db.community("town");
        save(db, "town", "town.example", DomainType::Custom).expect("saved");
        let mut patch = CommunityPatch::new();
        patch.is_published = Change::Set(false);
        db.service.communities().save_community_config("town", patch).expect("hidden");
        for host in ["town.example", "town"] {
            assert_eq!(resolve(db, host), None, "{host}");
            assert_eq!(db.service.communities().resolve_community(host).expect("an answer"), None, "{host}");
        }
    }

    fn a_constraint_allows_two_domain_types(db: &TestDatabase) {
        let known: Vec<_> = DomainType::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(known, ["blank_subdomain", "custom"]);
        let error = "sheep".parse::<DomainType>().expect_err("no type");
        assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, Some("23514")));
        db.community("town");
        let insert = |kind: &str| {
            let values = format!("('town', '{kind}.example', '{kind}')");
            db.raw
                .try_rows(&format!("INSERT INTO community_domains (community_id, domain, domain_type) VALUES {values}"))
        };
        for kind in known {
            insert(kind).expect(kind);
        }
        for bad in ["sheep", "", "Custom"] {
            insert(bad).expect_err(bad);
        }
    }
}
