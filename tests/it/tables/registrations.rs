//! Registrations of spaces (SPEC 2.4).

use townsquare::{ErrorKind, NewRegistration, SpaceType, Uuid, blocking::wait};
use townsquare_tests::{
    on_both_engines,
    store::{Store, assert_fails},
    town::morning,
};

on_both_engines!(
    a_registration_is_returned_and_can_be_read,
    every_type_of_space_can_be_registered_and_no_other,
    a_space_is_registered_once,
    a_registration_needs_a_name,
    a_registration_outlives_its_space,
    a_fid_is_any_integer_of_32_bits,
);

fn register(store: &Store, registration: NewRegistration) -> townsquare::Result<townsquare::SpaceRegistration> {
    wait(store.service.communities().register_space(registration))
}

fn a_registration_is_returned_and_can_be_read(store: &Store) {
    let id = Uuid::new_v4();
    assert_eq!(wait(store.client.communities().get_space_registration(id)).expect("none"), None);
    let mut new = NewRegistration::new(id, "Plaza", SpaceType::NavPage);
    new.fid = Some(7);
    new.identity_public_key = Some("key".to_owned());
    new.signature = Some("signature".to_owned());
    let made = register(store, new).expect("registered");
    assert_eq!((made.space_id, made.space_name.as_str(), made.space_type), (id, "Plaza", SpaceType::NavPage));
    assert_eq!((made.fid, made.timestamp), (Some(7), morning()));
    assert_eq!((made.identity_public_key.as_deref(), made.signature.as_deref()), (Some("key"), Some("signature")));
    let read = wait(store.client.communities().get_space_registration(id)).expect("read by nobody");
    assert_eq!(read, Some(made));
    let row = "SELECT \"spaceId\", \"spaceName\", \"spaceType\" FROM \"spaceRegistrations\"";
    let expected = [id.to_string(), "Plaza".to_owned(), "navPage".to_owned()].map(Some);
    assert_eq!(store.outside.rows(row), [expected.to_vec()]);
}

fn every_type_of_space_can_be_registered_and_no_other(store: &Store) {
    let words: Vec<_> = SpaceType::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(words, ["profile", "token", "proposal", "channel", "navPage"]);
    for kind in SpaceType::ALL {
        let made = register(store, NewRegistration::new(Uuid::new_v4(), "x", *kind)).expect("registered");
        assert_eq!((made.space_type, made.fid, made.signature), (*kind, None, None));
        assert_eq!(kind.as_str().parse::<SpaceType>().expect("a word"), *kind);
    }
    for bad in ["sheep", "navpage", ""] {
        let error = bad.parse::<SpaceType>().expect_err("no type");
        assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, Some("23514")));
        let insert = "INSERT INTO \"spaceRegistrations\" (\"spaceId\", \"spaceName\", \"spaceType\")";
        let row = format!("{insert} VALUES ('{}', 'x', '{bad}')", Uuid::new_v4());
        store.outside.try_rows(&row).expect_err(bad);
    }
}

fn a_space_is_registered_once(store: &Store) {
    let id = Uuid::new_v4();
    let first = register(store, NewRegistration::new(id, "first", SpaceType::Token)).expect("registered");
    let second = register(store, NewRegistration::new(id, "second", SpaceType::Token));
    let sentence = "Register space failed: Record already exists";
    assert_fails(second, ErrorKind::AlreadyExists, Some("23505"), sentence);
    let read = wait(store.client.communities().get_space_registration(id)).expect("read");
    assert_eq!(read, Some(first));
}

fn a_registration_needs_a_name(store: &Store) {
    let mut bare = NewRegistration::new(Uuid::new_v4(), "", SpaceType::Token);
    bare.space_name = None;
    let sentence = "Register space failed: Required field is missing";
    assert_fails(register(store, bare), ErrorKind::FieldMissing, Some("23502"), sentence);
}

fn a_registration_outlives_its_space(store: &Store) {
    let space = store.space();
    register(store, NewRegistration::new(space.id, "x", SpaceType::Profile)).expect("registered");
    wait(store.service.spaces().delete_space(space.id)).expect("deleted");
    assert!(wait(store.client.communities().get_space_registration(space.id)).expect("read").is_some());
}

fn a_fid_is_any_integer_of_32_bits(store: &Store) {
    for fid in [i32::MIN, -1, 0, i32::MAX] {
        let mut new = NewRegistration::new(Uuid::new_v4(), "x", SpaceType::Channel);
        new.fid = Some(fid);
        assert_eq!(register(store, new).expect("registered").fid, Some(fid));
    }
    store.outside.try_rows("UPDATE \"spaceRegistrations\" SET fid = 2147483648").expect_err("too large for INTEGER");
}
