//! Community configurations (SPEC 2.2, 4.3, 8): upsert, the published view, navigation.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};
use townsquare::{Change, CommunityPatch, ErrorKind, blocking::wait};
use townsquare_tests::{
    on_both_engines, on_engine,
    store::{Store, assert_fails, required},
    town::morning,
};

on_both_engines!(
    a_new_community_takes_the_tables_defaults,
    saving_again_keeps_the_id_and_changes_what_is_named,
    saving_nothing_of_a_known_community_changes_nothing,
    updated_at_moves_with_every_save_and_never_back,
    a_new_community_needs_its_four_configurations,
    a_required_configuration_cannot_be_cleared,
    an_id_is_at_most_fifty_characters,
    the_table_guards_the_fifty_characters_against_other_writers,
    a_published_configuration_has_six_keys,
    an_unpublished_configuration_is_null,
    navigation_is_set_alone,
    admin_keys_come_back_in_order,
);

on_engine!(postgres_alone, Postgres, the_function_in_the_database_says_the_same);

fn a_new_community_takes_the_tables_defaults(store: &Store) {
    let made = store.community("town.example");
    assert_eq!(made.community_id, "town.example");
    assert_eq!((&made.brand_config, &made.fidgets_config), (&json!({"brand": 1}), &json!({"fidgets": 4})));
    assert_eq!((&made.assets_config, &made.community_config), (&json!({"assets": 2}), &json!({"community": 3})));
    assert_eq!((&made.navigation_config, &made.ui_config, &made.admin_email), (&None, &None, &None));
    assert_eq!(made.admin_identity_public_keys, None);
    assert_eq!((made.is_published, made.custom_domain_authorized), (true, false));
    assert_eq!(made.updated_at, morning());
    let row = "SELECT is_published, custom_domain_authorized, navigation_config FROM community_configs";
    assert_eq!(store.outside.rows(row), [vec![Some("t".to_owned()), Some("f".to_owned()), None]]);
}

fn saving_again_keeps_the_id_and_changes_what_is_named(store: &Store) {
    let made = store.community("town.example");
    let other = store.community("other.example");
    store.hands.advance(Duration::from_secs(1));
    let mut patch = CommunityPatch::new();
    patch.ui_config = Change::Set(json!({"dark": true}));
    patch.is_published = Change::Set(false);
    patch.admin_email = Change::Set("mayor@town.example".to_owned());
    let saved = wait(store.service.communities().save_community_config("town.example", patch)).expect("saved");
    let mut expected = made;
    expected.ui_config = Some(json!({"dark": true}));
    expected.is_published = false;
    expected.admin_email = Some("mayor@town.example".to_owned());
    expected.updated_at += Duration::from_secs(1);
    assert_eq!(saved, expected);
    let mut patch = CommunityPatch::new();
    patch.ui_config = Change::Clear;
    patch.admin_email = Change::Clear;
    patch.custom_domain_authorized = Change::Set(true);
    let saved = wait(store.service.communities().save_community_config("town.example", patch)).expect("saved");
    assert_eq!((saved.ui_config, saved.admin_email, saved.custom_domain_authorized), (None, None, true));
    assert_eq!((saved.id, saved.is_published), (expected.id, false), "what is not named stays");
    let untouched = wait(store.service.communities().save_community_config("other.example", CommunityPatch::new()));
    assert_eq!(untouched.expect("the row"), other);
    assert_eq!(store.outside.count("community_configs"), 2);
}

fn saving_nothing_of_a_known_community_changes_nothing(store: &Store) {
    let made = store.community("town.example");
    store.hands.advance(Duration::from_secs(5));
    let same = wait(store.service.communities().save_community_config("town.example", CommunityPatch::new()));
    assert_eq!(same.expect("the row"), made);
}

fn updated_at_moves_with_every_save_and_never_back(store: &Store) {
    let mut last = store.community("town.example").updated_at;
    for step in [0, 0, -3_600, 7_200, -86_400] {
        store.hands.step(SignedDuration::from_secs(step));
        let saved = store.community("town.example").updated_at;
        let moved = wait(store.service.communities().update_navigation("town.example", Some(json!([]))));
        let moved = moved.expect("updated").updated_at;
        assert!(last < saved && saved < moved, "{last} {saved} {moved}");
        last = moved;
    }
}

fn a_new_community_needs_its_four_configurations(store: &Store) {
    let sentence = "Save community config failed: Required field is missing";
    let drop_one: [fn(&mut CommunityPatch); 4] = [
        |patch| patch.brand_config = Change::Keep,
        |patch| patch.assets_config = Change::Clear,
        |patch| patch.community_config = Change::Keep,
        |patch| patch.fidgets_config = Change::Clear,
    ];
    for drop_one in drop_one {
        let mut patch = required();
        drop_one(&mut patch);
        let refused = wait(store.service.communities().save_community_config("town.example", patch));
        assert_fails(refused, ErrorKind::FieldMissing, Some("23502"), sentence);
    }
    let refused = wait(store.service.communities().save_community_config("town.example", CommunityPatch::new()));
    assert_fails(refused, ErrorKind::FieldMissing, Some("23502"), sentence);
    assert_eq!(store.outside.count("community_configs"), 0);
}

fn a_required_configuration_cannot_be_cleared(store: &Store) {
    let made = store.community("town.example");
    let mut patch = CommunityPatch::new();
    patch.brand_config = Change::Clear;
    patch.admin_email = Change::Set("x".to_owned());
    let refused = wait(store.service.communities().save_community_config("town.example", patch));
    let sentence = "Save community config failed: Required field is missing";
    assert_fails(refused, ErrorKind::FieldMissing, Some("23502"), sentence);
    // JSON's null is a value, and no absence.
    let mut patch = CommunityPatch::new();
    patch.brand_config = Change::Set(Value::Null);
    let saved = wait(store.service.communities().save_community_config("town.example", patch)).expect("saved");
    assert_eq!((saved.brand_config, saved.admin_email), (Value::Null, made.admin_email));
}

fn an_id_is_at_most_fifty_characters(store: &Store) {
    let communities = store.service.communities();
    for character in ["a", "é", "社", "🏘"] {
        let id = character.repeat(50);
        assert_eq!(store.community(&id).community_id, id);
        assert!(wait(communities.get_active_community_config(&id)).expect("read").is_some());
        let domain = format!("{}.example", character.repeat(3));
        wait(communities.save_community_domain(&id, &domain, townsquare::DomainType::Custom)).expect("a domain");
    }
    let id = "é".repeat(51);
    let words = "Database error: value too long for type character varying(50)";
    let refused = wait(communities.save_community_config(&id, required()));
    let sentence = format!("Save community config failed: {words}");
    assert_fails(refused, ErrorKind::InvalidInput, Some("22001"), &sentence);
    let refused = wait(communities.save_community_domain(&id, "x.example", townsquare::DomainType::Custom));
    let sentence = format!("Save community domain failed: {words}");
    assert_fails(refused, ErrorKind::InvalidInput, Some("22001"), &sentence);
    // A question is not refused: nobody has that name.
    assert_eq!(wait(communities.get_active_community_config(&id)).expect("none"), None);
    assert_eq!(store.outside.count("community_configs"), 4);
}

fn the_table_guards_the_fifty_characters_against_other_writers(store: &Store) {
    let insert = |id: &str| {
        store.outside.try_rows(&format!(
            "INSERT INTO community_configs (community_id, brand_config, assets_config, community_config, \
             fidgets_config) VALUES ('{id}', '1', '2', '3', '4')"
        ))
    };
    insert(&"社".repeat(50)).expect("fifty");
    insert(&"社".repeat(51)).expect_err("fifty-one");
    store
        .outside
        .run(&format!("UPDATE community_configs SET brand_config = '{{}}' WHERE community_id = '{}'", "社".repeat(50)));
    store
        .outside
        .try_rows(&format!("UPDATE community_configs SET community_id = '{}'", "b".repeat(51)))
        .expect_err("renamed to fifty-one");
    store.outside.try_rows("UPDATE community_configs SET brand_config = '{'").expect_err("no JSON");
    store.outside.try_rows("UPDATE community_configs SET brand_config = NULL").expect_err("required");
}

fn a_published_configuration_has_six_keys(store: &Store) {
    store.community("town.example");
    let read = || wait(store.client.communities().get_active_community_config("town.example")).expect("read");
    let bare = json!({
        "brand": {"brand": 1}, "assets": {"assets": 2}, "community": {"community": 3}, "fidgets": {"fidgets": 4},
        "navigation": null, "ui": null,
    });
    assert_eq!(serde_json::to_value(read().expect("published")).expect("JSON"), bare);
    let mut patch = CommunityPatch::new();
    patch.navigation_config = Change::Set(json!([{"to": "home"}]));
    patch.ui_config = Change::Set(json!("ui"));
    wait(store.service.communities().save_community_config("town.example", patch)).expect("saved");
    let config = read().expect("published");
    assert_eq!((config.navigation, config.ui), (json!([{"to": "home"}]), json!("ui")));
}

fn an_unpublished_configuration_is_null(store: &Store) {
    let read = |id: &str| wait(store.client.communities().get_active_community_config(id)).expect("read");
    assert_eq!(read("town.example"), None, "there is none");
    store.community("town.example");
    for (published, expected) in [(Change::Set(false), false), (Change::Set(true), true), (Change::Clear, false)] {
        let mut patch = CommunityPatch::new();
        patch.is_published = published;
        wait(store.service.communities().save_community_config("town.example", patch)).expect("saved");
        assert_eq!(read("town.example").is_some(), expected, "{published:?}");
    }
    assert_eq!(read("TOWN.EXAMPLE"), None, "ids are what they are");
    assert_eq!(read(""), None);
}

/// SQLite keeps no functions: there the operation is the function.
fn the_function_in_the_database_says_the_same(store: &Store) {
    let call = |id: &str| store.outside.value(&format!("SELECT get_active_community_config('{id}')"));
    assert_eq!(call("town.example"), "NULL");
    store.community("town.example");
    let config = wait(store.client.communities().get_active_community_config("town.example")).expect("read");
    let config = serde_json::to_value(config.expect("published")).expect("JSON");
    assert_eq!(serde_json::from_str::<Value>(&call("town.example")).expect("JSON"), config);
    let mut patch = CommunityPatch::new();
    patch.is_published = Change::Set(false);
    wait(store.service.communities().save_community_config("town.example", patch)).expect("saved");
    assert_eq!(call("town.example"), "NULL");
}

fn navigation_is_set_alone(store: &Store) {
    let made = store.community("town.example");
    store.hands.advance(Duration::from_secs(1));
    let navigation = |value| wait(store.service.communities().update_navigation("town.example", value));
    let mut expected = made;
    for value in [Some(json!([1])), Some(Value::Null), None] {
        let saved = navigation(value.clone()).expect("saved");
        expected.navigation_config = value;
        expected.updated_at = saved.updated_at;
        assert_eq!(saved, expected);
    }
    let missing = wait(store.service.communities().update_navigation("nowhere", None));
    assert_fails(missing, ErrorKind::NotFound, None, "Update navigation failed: Record not found");
}

fn admin_keys_come_back_in_order(store: &Store) {
    let save = |keys: Change<Vec<String>>| {
        let mut patch = required();
        patch.admin_identity_public_keys = keys;
        let saved = wait(store.service.communities().save_community_config("town.example", patch)).expect("saved");
        saved.admin_identity_public_keys
    };
    let keys: Vec<String> = ["b", "a", "", "quote\"'", "back\\slash", "{brace}", "NULL", "b"].map(str::to_owned).into();
    assert_eq!(save(Change::Set(keys.clone())), Some(keys.clone()));
    assert_eq!(save(Change::Keep), Some(keys));
    assert_eq!(save(Change::Set(Vec::new())), Some(Vec::new()));
    assert_eq!(save(Change::Clear), None);
}
