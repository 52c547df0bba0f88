//! Pages of public spaces (SPEC 4.5, 8): order, defaults, limits, and no repeated rows.

use std::{collections::HashSet, time::Duration};

use townsquare::{
    Config, ErrorKind, Uuid,
    config::OwnerEmail,
    spaces::{DEFAULT_PAGE, NewSpace, Owner, PublicSpace, SpacePatch},
};
use townsquare_tests::{
    on_both_engines,
    test_database::{Engine, TestDatabase},
};

fn ids(db: &TestDatabase, limit: u32, offset: u64) -> Vec<Uuid> {
    let page = db.client.spaces().get_public_spaces(limit, offset).expect("a page");
    page.iter().map(|space| space.id).collect()
}

fn addresses_are_hidden_on_request(engine: Engine) {
    let Some(db) = TestDatabase::with(engine, Config::hide_owner_email) else { return };
    let owner = db.user();
    db.public_space(owner, "Plaza");
    for client in [&db.client, &db.service] {
        let page = client.spaces().get_public_spaces(1, 0).expect("a page");
        let Some(Owner { id, email, .. }) = &page[0].owner else { panic!("an owner") };
        assert_eq!((*id, email), (owner, &None));
    }
}

/// A user who signs up with the address of somebody else does not publish it.
fn only_verified_addresses_are_shown_on_request(engine: Engine) {
    let options = |config: Config| config.expose_owner_email(OwnerEmail::Verified);
    let Some(db) = TestDatabase::with(engine, options) else { return };
    let sign_up = |email| db.service.auth().sign_up(email, "correct horse").expect("signed up").id;
    let (ann, bob) = (sign_up("ann@town.example"), sign_up("bob@town.example"));
    let token = db.service.auth().create_verification_token(ann).expect("a token");
    db.client.auth().verify_email(&token).expect("verified");
    for (owner, name) in [(ann, "hers"), (bob, "his"), (ann, "hers too")] {
        db.public_space(owner, name);
    }
    let ownerless = db.service.spaces().create_space(NewSpace::named("free").public()).expect("created").id;
    let shown = |page: Vec<PublicSpace>| -> Vec<Option<(Uuid, Option<String>)>> {
        page.into_iter().map(|space| space.owner.map(|owner| (owner.id, owner.email))).collect()
    };
    let hers = Some((ann, Some("ann@town.example".to_owned())));
    for client in [&db.client, &db.service] {
        let mut found = shown(client.spaces().get_public_spaces(9, 0).expect("a page"));
        found.sort();
        let mut expected = [hers.clone(), Some((bob, None)), hers.clone(), None];
        expected.sort();
        assert_eq!(found, expected);
        let after = client.spaces().get_public_spaces_after(9, ownerless).expect("a page");
        assert!(shown(after).iter().all(|owner| *owner == hers || *owner == Some((bob, None))));
    }
    // Another program changes the address: the verification was of the old one.
    db.raw.run(&format!("UPDATE users SET email = 'eve@town.example' WHERE id = '{ann}'"));
    let found = shown(db.client.spaces().get_public_spaces(9, 0).expect("a page"));
    assert!(found.iter().flatten().all(|(_, email)| email.is_none()), "{found:?}");
}

#[test]
fn only_verified_addresses_are_shown_on_request_in_sqlite() {
    only_verified_addresses_are_shown_on_request(Engine::Sqlite);
}

#[test]
fn only_verified_addresses_are_shown_on_request_in_postgres() {
    only_verified_addresses_are_shown_on_request(Engine::Postgres);
}

#[test]
fn expose_owner_email_is_one_of_three_words_or_a_bool() {
    let set = |value| Config::new().set("expose_owner_email", value);
    for (value, expected) in [
        ("always", OwnerEmail::Always),
        ("true", OwnerEmail::Always),
        ("verified", OwnerEmail::Verified),
        ("never", OwnerEmail::Never),
        ("false", OwnerEmail::Never),
    ] {
        assert_eq!(set(value).expect("a value"), Config::new().expose_owner_email(expected), "{value}");
    }
    assert_eq!(Config::new().expose_owner_email(false), Config::new().hide_owner_email());
    let error = set("sometimes").expect_err("no value");
    assert_eq!(error.message(), "Option expose_owner_email is always, verified or never, not \"sometimes\"");
}

#[test]
fn addresses_are_hidden_on_request_in_sqlite() {
    addresses_are_hidden_on_request(Engine::Sqlite);
}

#[test]
fn addresses_are_hidden_on_request_in_postgres() {
    addresses_are_hidden_on_request(Engine::Postgres);
}

on_both_engines! {
    fn public_spaces_carry_the_owners_id_and_email(db: &TestDatabase) {
        let owner = Uuid::new_v4();
        db.user_of(owner, "Mayor+x@town.example");
        let space = db.public_space(owner, "Plaza");
        db.clock.advance(Duration::from_secs(1));
        let free = db.service.spaces().create_space(NewSpace::named("free").public()).expect("created");
        let page = db.client.spaces().get_public_spaces(DEFAULT_PAGE, 0).expect("a page");
        assert_eq!(page.iter().map(|found| &found.space).collect::<Vec<_>>(), [&free, &space]);
        assert_eq!(page[0].owner, None, "a space without owner is listed all the same");
        let Some(Owner { id, email, .. }) = &page[1].owner else { panic!("an owner") };
        assert_eq!((*id, email.as_deref()), (owner, Some("Mayor+x@town.example")));
    }

    fn pages_contain_no_private_spaces(db: &TestDatabase) {
        let owner = db.user();
        let space = db.public_space(owner, "shown");
        db.service.spaces().create_space(NewSpace::named("hidden").owned_by(owner)).expect("created");
        assert_eq!(ids(db, 10, 0), [space.id]);
        db.service.spaces().update_space(space.id, SpacePatch::new().hidden()).expect("hidden");
        assert_eq!(ids(db, 10, 0), Vec::<Uuid>::new());
        assert_eq!(db.service.spaces().get_public_spaces(10, 0).expect("a page"), [], "nor for the service");
        db.service.spaces().update_space(space.id, SpacePatch::new().published()).expect("shown");
        assert_eq!(ids(db, 10, 0), [space.id]);
    }

    fn pages_are_rows_offset_to_offset_plus_limit(db: &TestDatabase) {
        let owner = db.user();
        let mut made: Vec<_> = (0..45)
            .map(|index| {
                db.clock.advance(Duration::from_micros(1));
                db.public_space(owner, &format!("{index}")).id
            })
            .collect();
        made.reverse();
        assert_eq!(DEFAULT_PAGE, 20);
        assert_eq!(ids(db, DEFAULT_PAGE, 0), made[..20]);
        assert_eq!(ids(db, DEFAULT_PAGE, 20), made[20..40]);
        assert_eq!(ids(db, DEFAULT_PAGE, 40), made[40..]);
        assert_eq!(ids(db, 3, 7), made[7..10]);
        assert_eq!(ids(db, 1, 44), made[44..]);
        assert_eq!(ids(db, 1_000, 0), made);
        assert_eq!(ids(db, 20, 45), Vec::<Uuid>::new());
        assert_eq!(ids(db, 20, u64::try_from(i64::MAX).expect("in range")), Vec::<Uuid>::new());
    }

    fn pages_of_rows_with_equal_times_do_not_overlap(db: &TestDatabase) {
        let owner = db.user();
        let mut made: Vec<_> = (0..200).map(|index| db.public_space(owner, &format!("{index}")).id).collect();
        made.sort();
        let mut seen = Vec::new();
        for page in 0..29 {
            seen.extend(ids(db, 7, page * 7));
            // An update of another column does not change the order.
            let touched = made[usize::try_from(page).expect("small") * 3];
            db.service.spaces().update_space(touched, SpacePatch::new().name("touched")).expect("updated");
        }
        assert_eq!(seen.iter().collect::<HashSet<_>>().len(), 200);
        assert_eq!(seen, made, "ties are broken by id");
    }

    /// SPEC 2.6 does not require `created_at`, so other programs may write NULL; both engines then use the
    /// order of PostgreSQL's `created_at DESC`.
    fn rows_without_created_at_come_first(db: &TestDatabase) {
        let owner = db.user();
        let space = db.public_space(owner, "timed");
        let untimed = Uuid::from_u128(1);
        db.raw.run(&format!(
            "INSERT INTO spaces (id, name, owner_id, is_public, created_at) VALUES ('{untimed}', 'x', '{owner}', true, NULL)"
        ));
        assert_eq!(ids(db, 10, 0), [untimed, space.id]);
        let own = db.service.spaces().get_user_spaces(owner).expect("a list");
        assert_eq!(own.iter().map(|space| space.id).collect::<Vec<_>>(), [untimed, space.id]);
    }

    fn limits_are_1_to_1000_and_offsets_from_0(db: &TestDatabase) {
        let spaces = db.client.spaces();
        for (limit, offset, named) in
            [(0, 0, "limit"), (1_001, 0, "limit"), (u32::MAX, 0, "limit"), (1, u64::MAX, "offset")]
        {
            let error = spaces.get_public_spaces(limit, offset).expect_err(named);
            assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, None), "{error}");
            assert!(error.to_string().starts_with("Get public spaces failed: "), "{error}");
            assert!(error.message().contains(named), "{error}");
        }
        spaces.get_public_spaces(1, 0).expect("the least");
        spaces.get_public_spaces(1_000, 0).expect("the most");
    }
}
