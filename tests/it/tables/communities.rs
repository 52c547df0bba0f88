//! Community configurations (SPEC 2.2, 4.3, 8): upsert, the published view, navigation.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};
use townsquare::{ErrorKind, communities::CommunityPatch, spaces::Change};
use townsquare_tests::{
    on_both_engines, on_engine,
    test_database::{assert_fails, required},
};

on_both_engines! {
    fn a_new_community_gets_the_column_defaults(db: &TestDatabase) {
        let made = db.community("town.example");
        assert_eq!(made.community_id, "town.example");
        assert_eq!((&made.brand_config, &made.fidgets_config), (&json!({"brand": 1}), &json!({"fidgets": 4})));
        assert_eq!((&made.assets_config, &made.community_config), (&json!({"assets": 2}), &json!({"community": 3})));
        assert_eq!((&made.navigation_config, &made.ui_config, &made.admin_email), (&None, &None, &None));
        assert_eq!(made.admin_identity_public_keys, None);
        assert_eq!((made.is_published, made.custom_domain_authorized), (true, false));
        assert_eq!(made.updated_at, db.now());
        let row = "SELECT is_published, custom_domain_authorized, navigation_config FROM community_configs";
        assert_eq!(db.raw.rows(row), [vec![Some("t".to_owned()), Some("f".to_owned()), None]]);
    }

    fn saving_again_keeps_the_id_and_changes_only_the_named_columns(db: &TestDatabase) {
        let made = db.community("town.example");
        let other = db.community("other.example");
        db.clock.advance(Duration::from_secs(1));
        let mut patch = CommunityPatch::new();
        patch.ui_config = Change::Set(json!({"dark": true}));
        patch.is_published = Change::Set(false);
        patch.admin_email = Change::Set("mayor@town.example".to_owned());
        let saved = db.service.communities().save_community_config("town.example", patch).expect("saved");
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
        let saved = db.service.communities().save_community_config("town.example", patch).expect("saved");
        assert_eq!((saved.ui_config, saved.admin_email, saved.custom_domain_authorized), (None, None, true));
        assert_eq!((saved.id, saved.is_published), (expected.id, false), "what is not named stays");
        let untouched = db.service.communities().save_community_config("other.example", CommunityPatch::new());
        assert_eq!(untouched.expect("the row"), other);
        assert_eq!(db.raw.count("community_configs"), 2);
    }

    fn an_empty_patch_of_a_known_community_changes_nothing(db: &TestDatabase) {
        let made = db.community("town.example");
        db.clock.advance(Duration::from_secs(5));
        let same = db.service.communities().save_community_config("town.example", CommunityPatch::new());
        assert_eq!(same.expect("the row"), made);
    }

    fn updated_at_grows_with_every_save(db: &TestDatabase) {
        let mut last = db.community("town.example").updated_at;
        for step in [0, 0, -3_600, 7_200, -86_400] {
            db.clock.step(SignedDuration::from_secs(step));
            let saved = db.community("town.example").updated_at;
            let moved = db.service.communities().update_navigation("town.example", Some(json!([])));
            let moved = moved.expect("updated").updated_at;
            assert!(last < saved && saved < moved, "{last} {saved} {moved}");
            last = moved;
        }
    }

    fn a_new_community_needs_its_four_configurations(db: &TestDatabase) {
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
            let refused = db.service.communities().save_community_config("town.example", patch);
            assert_fails(refused, ErrorKind::FieldMissing, Some("23502"), sentence);
        }
        let refused = db.service.communities().save_community_config("town.example", CommunityPatch::new());
        assert_fails(refused, ErrorKind::FieldMissing, Some("23502"), sentence);
        assert_eq!(db.raw.count("community_configs"), 0);
    }

    fn a_required_configuration_cannot_be_cleared(db: &TestDatabase) {
        let made = db.community("town.example");
        let mut patch = CommunityPatch::new();
        patch.brand_config = Change::Clear;
        patch.admin_email = Change::Set("x".to_owned());
        let refused = db.service.communities().save_community_config("town.example", patch);
        let sentence = "Save community config failed: Required field is missing";
        assert_fails(refused, ErrorKind::FieldMissing, Some("23502"), sentence);
        // JSON null is a value.
        let mut patch = CommunityPatch::new();
        patch.brand_config = Change::Set(Value::Null);
        let saved = db.service.communities().save_community_config("town.example", patch).expect("saved");
        assert_eq!((saved.brand_config, saved.admin_email), (Value::Null, made.admin_email));
    }

    fn an_id_is_at_most_fifty_characters(db: &TestDatabase) {
        let communities = db.service.communities();
        for character in ["a", "é", "社", "🏘"] {
            let id = character.repeat(50);
            assert_eq!(db.community(&id).community_id, id);
            assert!(communities.get_active_community_config(&id).expect("read").is_some());
            let domain = format!("{}.example", character.repeat(3));
            communities.save_community_domain(&id, &domain, townsquare::communities::DomainType::Custom).expect("a domain");
        }
        let id = "é".repeat(51);
        let words = "Database error: value too long for type character varying(50)";
        let refused = communities.save_community_config(&id, required());
        let sentence = format!("Save community config failed: {words}");
        assert_fails(refused, ErrorKind::InvalidInput, Some("22001"), &sentence);
        let refused = communities.save_community_domain(&id, "x.example", townsquare::communities::DomainType::Custom);
        let sentence = format!("Save community domain failed: {words}");
        assert_fails(refused, ErrorKind::InvalidInput, Some("22001"), &sentence);
        let refused = communities.save_community_config("", required());
        assert_fails(refused, ErrorKind::InvalidInput, None, "Save community config failed: community_id is empty");
        // A read accepts a longer id and finds nothing.
        assert_eq!(communities.get_active_community_config(&id).expect("none"), None);
        assert_eq!(db.raw.count("community_configs"), 4);
    }

    fn a_constraint_limits_the_id_to_fifty_characters(db: &TestDatabase) {
        let insert = |id: &str| {
            db.raw.try_rows(&format!(
                "INSERT INTO community_configs (community_id, brand_config, assets_config, community_config, \
             fidgets_config) VALUES ('{id}', '1', '2', '3', '4')"
            ))
        };
        insert(&"社".repeat(50)).expect("fifty");
        insert(&"社".repeat(51)).expect_err("fifty-one");
        db.raw.run(&format!(
            "UPDATE community_configs SET brand_config = '{{}}' WHERE community_id = '{}'",
            "社".repeat(50)
        ));
        db.raw
            .try_rows(&format!("UPDATE community_configs SET community_id = '{}'", "b".repeat(51)))
            .expect_err("renamed to fifty-one");
        db.raw.try_rows("UPDATE community_configs SET brand_config = '{'").expect_err("no JSON");
        db.raw.try_rows("UPDATE community_configs SET brand_config = NULL").expect_err("required");
    }

    fn a_published_configuration_has_six_keys(db: &TestDatabase) {
        db.community("town.example");
        let read = || db.client.communities().get_active_community_config("town.example").expect("read");
        let bare = json!({
            "brand": {"brand": 1}, "assets": {"assets": 2}, "community": {"community": 3}, "fidgets": {"fidgets": 4},
            "navigation": null, "ui": null,
        });
        assert_eq!(serde_json::to_value(read().expect("published")).expect("JSON"), bare);
        let mut patch = CommunityPatch::new();
        patch.navigation_config = Change::Set(json!([{"to": "home"}]));
        patch.ui_config = Change::Set(json!("ui"));
        db.service.communities().save_community_config("town.example", patch).expect("saved");
        let config = read().expect("published");
        assert_eq!((config.navigation, config.ui), (json!([{"to": "home"}]), json!("ui")));
    }

    fn an_unpublished_configuration_is_null(db: &TestDatabase) {
        let read = |id: &str| db.client.communities().get_active_community_config(id).expect("read");
        assert_eq!(read("town.example"), None, "there is none");
        db.community("town.example");
        for (published, expected) in [(Change::Set(false), false), (Change::Set(true), true), (Change::Set(false), false)] {
            let mut patch = CommunityPatch::new();
            patch.is_published = published;
            db.service.communities().save_community_config("town.example", patch).expect("saved");
            assert_eq!(read("town.example").is_some(), expected, "{published:?}");
        }
        assert_eq!(read("TOWN.EXAMPLE"), None, "ids are what they are");
        assert_eq!(read(""), None);
    }

    fn update_navigation_changes_only_the_navigation(db: &TestDatabase) {
        let made = db.community("town.example");
        db.clock.advance(Duration::from_secs(1));
        let navigation = |value| db.service.communities().update_navigation("town.example", value);
        let mut expected = made;
        for value in [Some(json!([1])), Some(Value::Null), None] {
            let saved = navigation(value.clone()).expect("saved");
            expected.navigation_config = value;
            expected.updated_at = saved.updated_at;
            assert_eq!(saved, expected);
        }
        let missing = db.service.communities().update_navigation("nowhere", None);
        assert_fails(missing, ErrorKind::NotFound, None, "Update navigation failed: Record not found");
    }

    fn admin_keys_keep_their_order(db: &TestDatabase) {
        let save = |keys: Change<Vec<String>>| {
            let mut patch = required();
            patch.admin_identity_public_keys = keys;
            let saved = db.service.communities().save_community_config("town.example", patch).expect("saved");
            saved.admin_identity_public_keys
        };
        let keys: Vec<String> =
            ["b", "a", "", "quote\"'", "back\\slash", "{brace}", "NULL", "b"].map(str::to_owned).into();
        assert_eq!(save(Change::Set(keys.clone())), Some(keys.clone()));
        assert_eq!(save(Change::Keep), Some(keys));
        assert_eq!(save(Change::Set(Vec::new())), Some(Vec::new()));
        assert_eq!(save(Change::Clear), None);
    }
}

on_engine! { Postgres in postgres_alone;
    /// SQLite stores no functions: there the operation replaces it.
    fn the_sql_function_returns_the_active_configuration(db: &TestDatabase) {
        let call = |id: &str| db.raw.value(&format!("SELECT get_active_community_config('{id}')"));
        assert_eq!(call("town.example"), "NULL");
        db.community("town.example");
        let config = db.client.communities().get_active_community_config("town.example").expect("read");
        let config = serde_json::to_value(config.expect("published")).expect("JSON");
        assert_eq!(serde_json::from_str::<Value>(&call("town.example")).expect("JSON"), config);
        let mut patch = CommunityPatch::new();
        patch.is_published = Change::Set(false);
        db.service.communities().save_community_config("town.example", patch).expect("saved");
        assert_eq!(call("town.example"), "NULL");
    }
}
