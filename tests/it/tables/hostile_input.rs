//! Hostile text in the tables: SQL, very long, right-to-left and with NUL characters.

use serde_json::json;
use townsquare::{
    ErrorKind, Uuid,
    communities::{DomainType, NewRegistration, SpaceType},
    spaces::{Change, FidgetPatch, NewFidget, NewSpace, SpacePatch},
};
use townsquare_tests::{
    on_both_engines, on_engine,
    test_database::{TestDatabase, required},
};

const TEXTS: [&str; 17] = [
    "",
    " ",
    "Robert'); DROP TABLE spaces; --",
    "\" OR \"\"=\"",
    "1; DELETE FROM users",
    "$1 ?1 :name @p {spaces.select}",
    "%_\\%",
    "\\' \\\\ \\x00 \\u0000",
    "/* */ -- #",
    "NULL",
    "\n\r\t\u{b}\u{1}\u{7f}",
    "👩‍👩‍👧‍👦 🇩🇪 🏴󠁧󠁢󠁳󠁣󠁴󠁿",
    "שלום עולם \u{202e}txt.exe\u{202c} مرحبا",
    "e\u{301} é \u{1e9b}\u{323}",
    "\u{feff}bom\u{200b}",
    "\u{10ffff}\u{fffe}\u{d7ff}",
    "townsquare.spaces",
];

/// Writes `text` to every text column and reads it back.
///
/// Fidget types, domains and addresses are shortened: they are index keys, which have a maximum length.
fn write_everywhere(db: &TestDatabase, text: &str) {
    let word: String = text.chars().take(100).collect();
    let owner = Uuid::new_v4();
    let address = format!("{word}{}", owner.simple());
    db.user_of(owner, &address);
    let new = NewSpace::named(text).description(text).owned_by(owner).public();
    let space = db.service.spaces().create_space(new).expect("a space");
    assert_eq!((space.name.as_str(), space.description.as_deref()), (text, Some(text)));
    let patch = SpacePatch::new().name(format!("{word}{word}")).description(Some(text.to_owned()));
    let updated = db.service.spaces().update_space(space.id, patch).expect("updated");
    assert_eq!(updated.name, format!("{word}{word}"));
    assert_eq!(db.client.spaces().get_space(space.id).expect("read"), updated);
    let page = db.client.spaces().get_public_spaces(100, 0).expect("a page");
    let shown = page.iter().find(|shown| shown.space.id == space.id).expect("it is public");
    assert_eq!(shown.owner.as_ref().and_then(|owner| owner.email.as_deref()), Some(address.as_str()));
    let new = NewFidget::of_type(&word).config(json!(text)).position(json!({text: text}));
    let fidget = db.service.fidgets().create_fidget(space.id, new).expect("a fidget");
    assert_eq!((&fidget.kind, &fidget.config), (&word, &Some(json!(text))));
    let found = db.service.spaces().get_space_with_fidgets(space.id).expect("read");
    assert_eq!((found.fidgets, &found.space), (vec![fidget], &updated));
    // An empty id is refused.
    let id: String = if text.is_empty() { "empty".to_owned() } else { text.chars().take(50).collect() };
    let json = json!({text: [text]});
    let mut patch = required();
    for config in [
        &mut patch.brand_config,
        &mut patch.assets_config,
        &mut patch.community_config,
        &mut patch.fidgets_config,
        &mut patch.navigation_config,
        &mut patch.ui_config,
    ] {
        *config = Change::Set(json.clone());
    }
    patch.admin_email = Change::Set(text.to_owned());
    patch.admin_identity_public_keys = Change::Set(vec![text.to_owned(), String::new()]);
    let saved = db.service.communities().save_community_config(&id, patch).expect("saved");
    assert_eq!((&saved.community_id, saved.admin_email.as_deref()), (&id, Some(text)));
    assert_eq!(saved.admin_identity_public_keys, Some(vec![text.to_owned(), String::new()]));
    let active = db.client.communities().get_active_community_config(&id).expect("read").expect("published");
    assert_eq!((&active.brand, &active.assets, &active.community, &active.fidgets), (&json, &json, &json, &json));
    assert_eq!((&active.navigation, &active.ui), (&json, &json));
    let domain = db.service.communities().save_community_domain(&id, &word, DomainType::Custom);
    match domain {
        // Hosts are normalised; a text that normalises to nothing is no domain.
        Ok(saved) => assert_eq!(
            db.client.communities().resolve_community(&saved.domain).expect("read").as_ref(),
            Some(&id),
            "{saved:?}"
        ),
        Err(error) => assert_eq!(error.message(), "domain is empty"),
    }
    let mut new = NewRegistration::new(space.id, text, SpaceType::Token);
    new.identity_public_key = Some(text.to_owned());
    new.signature = Some(text.to_owned());
    let made = db.service.communities().register_space(new).expect("registered");
    assert_eq!((made.space_name.as_str(), made.signature.as_deref()), (text, Some(text)));
    assert_eq!(db.client.communities().get_space_registration(space.id).expect("read"), Some(made));
    // Every text is a valid argument of a read.
    db.client.communities().resolve_community(text).expect("an answer");
}

on_both_engines! {
    fn every_text_is_returned_unchanged(db: &TestDatabase) {
        for text in TEXTS {
            write_everywhere(db, text);
        }
        assert_eq!(db.raw.count("spaces"), TEXTS.len(), "no text was ever a statement");
    }

    fn a_text_of_a_megabyte_is_returned_unchanged(db: &TestDatabase) {
        let large = |config: townsquare::Config| config.max_name_size(1 << 20).max_json_size(4 << 20);
        let db = &TestDatabase::with(db.engine, large).expect("the engine is there");
        write_everywhere(db, &"ñ'\"🏘".repeat(131_072));
    }

    fn a_nul_is_refused_in_every_text(db: &TestDatabase) {
        let space = db.space();
        let fidget = db.fidget(space.id, "x");
        db.community("town");
        let (spaces, fidgets, communities) = (db.service.spaces(), db.service.fidgets(), db.service.communities());
        let registration = |change: fn(&mut NewRegistration)| {
            let mut new = NewRegistration::new(Uuid::new_v4(), "x", SpaceType::Token);
            change(&mut new);
            communities.register_space(new).map(drop)
        };
        let community = |change: fn(&mut townsquare::communities::CommunityPatch)| {
            let mut patch = required();
            change(&mut patch);
            communities.save_community_config("town", patch).map(drop)
        };
        let nul = || "a\0b".to_owned();
        let refused = [
            ("name", spaces.create_space(NewSpace::named(nul())).map(drop)),
            ("description", spaces.create_space(NewSpace::named("x").description(nul())).map(drop)),
            ("spaces[1].name", spaces.create_spaces(vec![NewSpace::named("x"), NewSpace::named(nul())]).map(drop)),
            ("name", spaces.update_space(space.id, SpacePatch::new().name(nul())).map(drop)),
            ("description", spaces.update_space(space.id, SpacePatch::new().description(Some(nul()))).map(drop)),
            ("type", fidgets.create_fidget(space.id, NewFidget::of_type(nul())).map(drop)),
            ("fidgets[0].type", fidgets.create_fidgets(space.id, vec![NewFidget::of_type(nul())]).map(drop)),
            ("type", fidgets.update_fidget(fidget.id, FidgetPatch::new().kind(nul())).map(drop)),
            ("community_id", communities.save_community_config("a\0", required()).map(drop)),
            ("community_id", communities.get_active_community_config("a\0").map(drop)),
            ("community_id", communities.update_navigation("a\0", None).map(drop)),
            ("community_id", communities.save_community_domain("a\0", "x.example", DomainType::Custom).map(drop)),
            ("domain", communities.save_community_domain("town", "a\0.example", DomainType::Custom).map(drop)),
            ("domain", communities.delete_community_domain("a\0.example")),
            ("host", communities.resolve_community("a\0.example").map(drop)),
            ("space_name", registration(|new| new.space_name = Some("\0".to_owned()))),
            ("identity_public_key", registration(|new| new.identity_public_key = Some("\0".to_owned()))),
            ("signature", registration(|new| new.signature = Some("\0".to_owned()))),
            ("admin_email", community(|patch| patch.admin_email = Change::Set("\0".to_owned()))),
            (
                "admin_identity_public_keys",
                community(|patch| {
                    patch.admin_identity_public_keys = Change::Set(vec!["x".to_owned(), "\0".to_owned()]);
                }),
            ),
        ];
        for (name, result) in refused {
            let error = result.expect_err(name);
            assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, None), "{name}: {error:?}");
            assert_eq!(error.message(), format!("{name} contains a NUL character"));
            assert!(
                error.operation().is_some_and(|operation| error.to_string().starts_with(operation.prefix())),
                "{error}"
            );
        }
        assert_eq!((db.raw.count("spaces"), db.raw.count("fidgets")), (1, 1));
    }
}

on_engine! { Postgres in postgres_alone;
    /// SPEC 2 indexes a fidget's type and a domain; PostgreSQL refuses keys that do not fit into an index page.
    /// SQLite has no such limit, and the library adds none, so that texts that both engines accept are not refused.
    fn a_key_too_long_for_its_index_is_invalid_input(db: &TestDatabase) {
        let db = &TestDatabase::with(db.engine, |config| config.max_name_size(1 << 20)).expect("the engine is there");
        let space = db.space();
        db.community("town");
        let mut random = townsquare_tests::Rng::with_seed(1);
        // Random, so that compression does not shorten it.
        let long: String = (0..2_000).map(|_| format!("{:016x}", random.u64(..))).collect();
        let domain = db.service.communities().save_community_domain("town", &long, DomainType::Custom).map(drop);
        let kind = db.service.fidgets().create_fidget(space.id, NewFidget::of_type(&long)).map(drop);
        for (result, what) in [(kind, "a type"), (domain, "a domain")] {
            let error = result.expect_err(what);
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{what}: {error:?}");
        }
        let fair = &long[..2_000];
        db.service.fidgets().create_fidget(space.id, NewFidget::of_type(fair)).expect("a long type");
        db.service.communities().save_community_domain("town", fair, DomainType::Custom).expect("a long domain");
    }
}
