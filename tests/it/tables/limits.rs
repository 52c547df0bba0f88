//! Size limits: too large a text, JSON value or list is refused before anything is written.

use serde_json::{Value, json};
use townsquare::{
    Config, ErrorKind, Result,
    blocking::Client,
    communities::{Change, CommunityPatch, DomainType, NewRegistration, SpaceType},
    spaces::{FidgetPatch, NewFidget, NewSpace, SpacePatch},
};
use townsquare_tests::{
    on_both_engines,
    test_database::{Engine, TestDatabase, required},
};

const TEXT: usize = 1_000;
const JSON: usize = 2_000;

fn small(config: Config) -> Config {
    config.max_text_size(TEXT as u64).max_json_size(JSON as u64).max_bulk_rows(5)
}

/// A JSON value whose compact text has this size.
fn json_of(size: usize) -> Value {
    json!({"é": "x".repeat(size - json!({"é": ""}).to_string().len())})
}

fn community(client: &Client, change: impl FnOnce(&mut CommunityPatch)) -> Result<()> {
    let mut patch = required();
    change(&mut patch);
    client.communities().save_community_config("town", patch).map(drop)
}

fn too_large_values_are_refused(engine: Engine) {
    let Some(db) = TestDatabase::with(engine, small) else { return };
    let (spaces, fidgets, communities) = (db.service.spaces(), db.service.fidgets(), db.service.communities());
    let space = db.space();
    let fidget = db.fidget(space.id, "x");
    db.community("town");
    let text = |over: usize| "é".repeat(TEXT / 2) + &"x".repeat(over);
    // With 0 every call succeeds; with 1 every call is refused.
    let calls = |over: usize| {
        let (long, large) = (text(over), json_of(JSON + over));
        let registration = |change: fn(&mut NewRegistration, String)| {
            let mut new = NewRegistration::new(townsquare::Uuid::new_v4(), "x", SpaceType::Token);
            change(&mut new, text(over));
            communities.register_space(new).map(drop)
        };
        let id = fidget.id;
        let many = |rows: usize| vec![NewFidget::of_type("x"); rows];
        [
            ("name", spaces.create_space(NewSpace::named(&long)).map(drop)),
            ("description", spaces.create_space(NewSpace::named("x").description(&long)).map(drop)),
            ("spaces[1].name", spaces.create_spaces(vec![NewSpace::named("x"), NewSpace::named(&long)]).map(drop)),
            ("spaces", spaces.create_spaces(vec![NewSpace::named("x"); 5 + over]).map(drop)),
            ("name", spaces.update_space(space.id, SpacePatch::new().name(&long)).map(drop)),
            ("description", spaces.update_space(space.id, SpacePatch::new().description(Some(long.clone()))).map(drop)),
            ("type", fidgets.create_fidget(space.id, NewFidget::of_type(&long)).map(drop)),
            ("config", fidgets.create_fidget(space.id, NewFidget::of_type("x").config(large.clone())).map(drop)),
            ("position", fidgets.create_fidget(space.id, NewFidget::of_type("x").position(large.clone())).map(drop)),
            ("fidgets[0].config", {
                fidgets.create_fidgets(space.id, vec![NewFidget::of_type("x").config(large.clone())]).map(drop)
            }),
            ("fidgets", fidgets.create_fidgets(space.id, many(5 + over)).map(drop)),
            ("type", fidgets.update_fidget(id, FidgetPatch::new().kind(&long)).map(drop)),
            ("config", fidgets.update_fidget(id, FidgetPatch::new().config(Some(large.clone()))).map(drop)),
            ("positions[", fidgets.save_positions(space.id, [(id, Some(large.clone()))].into()).map(drop)),
            ("brand_config", community(&db.service, |patch| patch.brand_config = Change::Set(large.clone()))),
            ("ui_config", community(&db.service, |patch| patch.ui_config = Change::Set(large.clone()))),
            ("admin_email", community(&db.service, |patch| patch.admin_email = Change::Set(long.clone()))),
            ("admin_identity_public_keys", {
                community(&db.service, |patch| patch.admin_identity_public_keys = Change::Set(vec![long.clone()]))
            }),
            ("admin_identity_public_keys", {
                let keys = vec!["x".repeat((JSON - 4) / 2 + over); 2];
                let keys = if over == 0 { Vec::new() } else { keys };
                community(&db.service, |patch| patch.admin_identity_public_keys = Change::Set(keys))
            }),
            ("navigation_config", communities.update_navigation("town", Some(large.clone())).map(drop)),
            ("domain", communities.save_community_domain("town", &long, DomainType::Custom).map(drop)),
            ("host", communities.resolve_community(&long).map(drop)),
            ("community_id", communities.get_active_community_config(&long).map(drop)),
            ("space_name", registration(|new, text| new.space_name = Some(text))),
            ("identity_public_key", registration(|new, text| new.identity_public_key = Some(text))),
            ("signature", registration(|new, text| new.signature = Some(text))),
        ]
    };
    for (name, result) in calls(0) {
        result.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let tables = ["spaces", "fidgets", "community_configs", "community_domains", "\"spaceRegistrations\""];
    let rows = || tables.map(|table| db.raw.rows(&format!("SELECT * FROM {table} ORDER BY 1")));
    let before = rows();
    for (name, result) in calls(1) {
        let error = result.expect_err(name);
        assert_eq!((error.kind(), error.code()), (ErrorKind::TooLarge, None), "{name}: {error:?}");
        assert!(error.message().starts_with(name) && error.message().contains(", option max_"), "{name}: {error}");
    }
    let positions = (0..6).map(|id| (townsquare::Uuid::from_u128(id), None)).collect();
    let error = fidgets.save_positions(space.id, positions).expect_err("six");
    assert_eq!(error.to_string(), "Save positions failed: positions has 6 rows; the limit, option max_bulk_rows, is 5");
    assert_eq!(rows(), before);
}

#[test]
fn too_large_values_are_refused_on_sqlite() {
    too_large_values_are_refused(Engine::Sqlite);
}

#[test]
fn too_large_values_are_refused_on_postgres() {
    too_large_values_are_refused(Engine::Postgres);
}

#[test]
fn a_limit_of_zero_is_refused() {
    for name in ["max_text_size", "max_name_size", "max_json_size", "max_bulk_rows"] {
        let config = Config::new().set(name, "0").expect("a number").data_dir("nowhere");
        let error = Client::open(config).expect_err("out of range");
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.message().starts_with(&format!("Option {name} is 1 to ")), "{error}");
    }
}

on_both_engines! {
    fn the_default_limits_are_a_mebibyte_of_text_and_a_quarter_of_json_and_1_kib_of_a_name(db: &TestDatabase) {
        let space = db.space();
        let spaces = db.service.spaces();
        let update = |patch: SpacePatch| spaces.update_space(space.id, patch);
        update(SpacePatch::new().description(Some("x".repeat(1 << 20)))).expect("a mebibyte");
        let text = |size: usize| "x".repeat(size);
        let registration = |size| NewRegistration::new(townsquare::Uuid::new_v4(), text(size), SpaceType::Token);
        update(SpacePatch::new().name(text(1_024))).expect("1 KiB");
        db.service.communities().register_space(registration(1_024)).expect("1 KiB");
        for error in [
            update(SpacePatch::new().description(Some(text((1 << 20) + 1)))).map(drop).expect_err("more"),
            update(SpacePatch::new().name(text(1_025))).map(drop).expect_err("more"),
            spaces.create_space(NewSpace::named(text(1_025))).map(drop).expect_err("more"),
            db.service.fidgets().create_fidget(space.id, NewFidget::of_type(text(1_025))).map(drop).expect_err("more"),
            db.service.communities().register_space(registration(1_025)).map(drop).expect_err("more"),
        ] {
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        }
        let config = |size: usize| {
            db.service.fidgets().create_fidget(space.id, NewFidget::of_type("x").config(json_of(size)))
        };
        config(256 << 10).expect("a quarter of a mebibyte");
        assert_eq!(config((256 << 10) + 1).expect_err("more").kind(), ErrorKind::TooLarge);
        let spaces = vec![NewSpace::named("x"); 10_001];
        assert_eq!(db.service.spaces().create_spaces(spaces).expect_err("10,001").kind(), ErrorKind::TooLarge);
        assert_eq!((db.raw.count("spaces"), db.raw.count("fidgets")), (1, 1));
    }

    fn a_flag_cannot_be_cleared(db: &TestDatabase) {
        let space = db.public_space(db.user(), "shown");
        let mut patch = SpacePatch::new().name("renamed");
        patch.is_public = Change::Clear;
        let error = db.service.spaces().update_space(space.id, patch).expect_err("cleared");
        let sentence = "Update space failed: Required field is missing: is_public";
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::FieldMissing, sentence));
        assert_eq!((error.code(), error.column()), (Some("23502"), Some("is_public")));
        assert_eq!(db.client.spaces().get_space(space.id).expect("still public"), space);
        db.community("town");
        let error = community(&db.service, |patch| patch.is_published = Change::Clear).expect_err("cleared");
        assert_eq!(error.message(), "Required field is missing: is_published");
        let clear = |patch: &mut CommunityPatch| patch.custom_domain_authorized = Change::Clear;
        let error = community(&db.service, clear).expect_err("cleared");
        assert_eq!(error.message(), "Required field is missing: custom_domain_authorized");
        let active = db.client.communities().get_active_community_config("town").expect("read");
        assert!(active.is_some(), "still published");
    }
}
