//! What only the service does with the rows of everybody: lists of whole tables and a new owner for a space; and the handle
//! that stays anonymous (DESIGN 4).

use townsquare::{
    Error, ErrorKind, Uuid,
    blocking::Client,
    communities::{Change, CommunityPatch, DomainType, NewRegistration, SpaceType},
    spaces::{NewFidget, NewSpace},
};
use townsquare_tests::{on_both_engines, test_database::assert_fails};

use super::users::{PASSWORD, sign_up};

const ANN: &str = "ann@town.example";

/// Reads a list page by page, two rows at a time.
fn all_rows<T>(page: impl Fn(u32, Option<Uuid>) -> Result<Vec<T>, Error>, key: impl Fn(&T) -> Uuid) -> Vec<T> {
    let mut rows: Vec<T> = Vec::new();
    loop {
        let next = page(2, rows.last().map(&key)).expect("a page");
        if next.is_empty() {
            return rows;
        }
        rows.extend(next);
    }
}

/// Calls each operation; returns its words, its table and its outcome.
fn call_all(client: &Client, space: Uuid, user: Uuid) -> [(&'static str, &'static str, Result<(), Error>); 6] {
    let (spaces, communities, auth) = (client.spaces(), client.communities(), client.auth());
    [
        ("List spaces", "spaces", spaces.list_spaces(10, None).map(drop)),
        ("Set owner", "spaces", spaces.set_owner(space, user).map(drop)),
        ("List users", "users", auth.list_users(10, None).map(drop)),
        ("List community configs", "community_configs", communities.list_community_configs(10, None).map(drop)),
        ("List community domains", "community_domains", communities.list_community_domains(10, None).map(drop)),
        ("List space registrations", "spaceRegistrations", communities.list_space_registrations(10, None).map(drop)),
    ]
}

on_both_engines! {
    fn the_service_lists_every_row_once_in_the_order_of_keys(db: &TestDatabase) {
        let (service, owner) = (&db.service, db.user());
        let space = |number| NewSpace::named(format!("space {number}")).owned_by(owner);
        let mut created = service.spaces().create_spaces((0..5).map(space).collect()).expect("created");
        created.sort_by_key(|space| space.id);
        assert_eq!(all_rows(|limit, after| service.spaces().list_spaces(limit, after), |space| space.id), created);
        for space in &created {
            let registration = NewRegistration::new(space.id, "registered", SpaceType::Profile);
            service.communities().register_space(registration).expect("registered");
        }
        let registered = all_rows(
            |limit, after| service.communities().list_space_registrations(limit, after),
            |registration| registration.space_id,
        );
        let ids: Vec<_> = registered.iter().map(|registration| registration.space_id).collect();
        assert_eq!(ids, created.iter().map(|space| space.id).collect::<Vec<_>>());
        let users = all_rows(|limit, after| service.auth().list_users(limit, after), |user| user.id);
        assert_eq!(users.iter().map(|user| user.id).collect::<Vec<_>>(), [owner]);
    }

    fn the_lists_of_communities_have_unpublished_ones(db: &TestDatabase) {
        let communities = db.service.communities();
        for name in ["harbor", "market", "park"] {
            let json = || serde_json::json!({});
            let mut patch = CommunityPatch::with_required(json(), json(), json(), json());
            patch.is_published = Change::Set(name != "park");
            communities.save_community_config(name, patch).expect("saved");
            communities.save_community_domain(name, &format!("{name}.example"), DomainType::Custom).expect("saved");
        }
        let configs =
            all_rows(|limit, after| communities.list_community_configs(limit, after), |config| config.id);
        let mut names: Vec<_> = configs.iter().map(|config| config.community_id.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["harbor", "market", "park"]);
        assert!(configs.is_sorted_by_key(|config| config.id));
        let domains =
            all_rows(|limit, after| communities.list_community_domains(limit, after), |domain| domain.id);
        assert_eq!(domains.len(), 3);
        assert!(domains.is_sorted_by_key(|domain| domain.id));
    }

    fn lists_and_owners_are_for_the_service(db: &TestDatabase) {
        let (space, user) = (db.space(), db.user());
        let (_, as_ann) = sign_up(db, ANN);
        for (client, kind) in [
            (&db.client, ErrorKind::Unauthorized),
            (&db.client.as_anonymous(), ErrorKind::Unauthorized),
            (&as_ann, ErrorKind::Forbidden),
        ] {
            for (words, table, result) in call_all(client, space.id, user) {
                let sentence = format!("{words} failed: Database error: permission denied for table {table}");
                assert_fails(result, kind, Some("42501"), &sentence);
            }
        }
        assert_eq!(db.service.spaces().get_space(space.id).expect("read"), space);
    }

    fn a_limit_of_a_list_is_one_to_a_thousand(db: &TestDatabase) {
        for limit in [0, 1_001] {
            let refused = db.service.spaces().list_spaces(limit, None);
            let sentence = format!("List spaces failed: limit is 1 to 1000, not {limit}");
            assert_fails(refused, ErrorKind::InvalidInput, None, &sentence);
        }
    }

    fn a_space_is_handed_to_another_owner(db: &TestDatabase) {
        let ((_, ann), (bobs_session, bob)) = (sign_up(db, ANN), sign_up(db, "bob@town.example"));
        let bob_id = bobs_session.user.id;
        let space = ann.spaces().create_space(NewSpace::named("Harbor")).expect("created");
        ann.fidgets().create_fidget(space.id, NewFidget::of_type("tides")).expect("created");
        let handed = db.service.spaces().set_owner(space.id, bob_id).expect("handed over");
        assert_eq!((handed.owner_id, handed.name.as_str()), (Some(bob_id), "Harbor"));
        assert!(ann.spaces().get_space(space.id).is_err(), "the space is private");
        assert_eq!(bob.spaces().get_space_with_fidgets(space.id).expect("read").fidgets.len(), 1);
        let missing = db.service.spaces().set_owner(Uuid::nil(), bob_id);
        assert_fails(missing, ErrorKind::NotFound, None, "Set owner failed: Record not found");
        let nobody = db.service.spaces().set_owner(space.id, Uuid::nil());
        let sentence = "Set owner failed: Referenced record not found";
        assert_fails(nobody, ErrorKind::ReferenceMissing, Some("23503"), sentence);
    }

    fn a_space_without_fidgets_is_found_if_that_is_allowed(db: &TestDatabase) {
        let space = db.service.spaces().create_space(NewSpace::named("bare").public()).expect("created");
        let sentence = "Get space with fidgets failed: Record not found";
        assert_fails(db.client.spaces().get_space_with_fidgets(space.id), ErrorKind::NotFound, None, sentence);
        let found = db.client.spaces().get_space_with_any_fidgets(space.id).expect("found");
        assert_eq!((found.space, found.fidgets.len()), (space.clone(), 0));
        let fidget = db.service.fidgets().create_fidget(space.id, NewFidget::of_type("tides")).expect("created");
        let found = db.client.spaces().get_space_with_any_fidgets(space.id).expect("found");
        assert_eq!(found.fidgets, [fidget]);
        let private = db.space();
        let hidden = db.client.spaces().get_space_with_any_fidgets(private.id);
        assert_fails(hidden, ErrorKind::NotFound, None, sentence);
    }

    fn an_anonymous_handle_stays_anonymous(db: &TestDatabase) {
        let (_, ann) = sign_up(db, ANN);
        let space = ann.spaces().create_space(NewSpace::named("Harbor")).expect("created");
        let anonymous = db.client.as_anonymous();
        db.client.auth().sign_in(ANN, PASSWORD).expect("signed in");
        assert!(db.client.spaces().get_space(space.id).is_ok(), "the client acts as Ann");
        assert!(anonymous.spaces().get_space(space.id).is_err(), "the handle does not");
        assert!(ann.as_anonymous().spaces().get_space(space.id).is_err());
        anonymous.auth().sign_in(ANN, PASSWORD).expect("a session");
        assert!(anonymous.spaces().get_space(space.id).is_err(), "a sign-in does not change its caller");
        anonymous.close();
        assert_fails(anonymous.spaces().get_public_spaces(1, 0), ErrorKind::Closed, None,
            "Get public spaces failed: The handle is closed");
        assert!(db.client.spaces().get_space(space.id).is_ok(), "the client is open");
        assert!(anonymous.as_anonymous().spaces().get_public_spaces(1, 0).is_err(), "a handle of a closed one is closed");
    }
}
