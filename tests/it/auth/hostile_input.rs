//! Hostile input by a signed-in user: foreign owners, SQL in texts, NUL characters, very long texts.

use serde_json::json;
use townsquare::{
    ErrorKind, Uuid,
    auth::identity_claim,
    communities::{NewRegistration, SpaceType},
    spaces::{Change, FidgetPatch, NewFidget, NewSpace, SpacePatch},
};
use townsquare_tests::{
    on_both_engines,
    test_database::{assert_fails, required},
};

use super::users::{PASSWORD, handle, sign_up};

/// Texts that are special in SQL.
const TEXTS: [&str; 9] = [
    "' OR '1'='1",
    "x'; DROP TABLE spaces; --",
    "\" OR \"\"=\"",
    "$1 ?1 :caller @caller {spaces.select}",
    "%_\\",
    "'||set_config('townsquare.caller','',false)||'",
    "\\'; RESET ROLE; --",
    "*/ OR TRUE /*",
    "\u{202e}\u{feff}ʼ",
];

const FOREIGN: &str = "Database error: new row violates row-level security policy for table";

on_both_engines! {
    fn a_space_cannot_be_created_for_another_owner(db: &TestDatabase) {
        let (_, stranger) = sign_up(db, "stranger@town.example");
        let owner = db.user();
        for owner in [owner, Uuid::from_u128(7)] {
            // The error does not tell whether the user exists.
            let refused = stranger.spaces().create_space(NewSpace::named("gift").owned_by(owner));
            let sentence = format!("Create space failed: {FOREIGN} \"spaces\"");
            assert_fails(refused, ErrorKind::Forbidden, Some("42501"), &sentence);
        }
        assert_eq!(db.raw.count("spaces"), 0);
    }

    fn create_spaces_with_a_foreign_owner_creates_none(db: &TestDatabase) {
        let (_, stranger) = sign_up(db, "stranger@town.example");
        let spaces = vec![NewSpace::named("mine"), NewSpace::named("gift").owned_by(db.user()), NewSpace::default()];
        let refused = stranger.spaces().create_spaces(spaces);
        let sentence = format!("Create spaces failed: {FOREIGN} \"spaces\"");
        assert_fails(refused, ErrorKind::Forbidden, Some("42501"), &sentence);
        assert_eq!(db.raw.count("spaces"), 0);
    }

    fn no_patch_changes_the_owner_or_space_of_a_row(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, "ann@town.example");
        let space = of_ann.spaces().create_space(NewSpace::named("mine")).expect("a space");
        let fidget = of_ann.fidgets().create_fidget(space.id, NewFidget::of_type("x")).expect("a fidget");
        let mut everything = SpacePatch::new().name("y").published();
        everything.description = Change::Set("owner_id".into());
        let updated = of_ann.spaces().update_space(space.id, everything).expect("changed");
        assert_eq!((updated.id, updated.owner_id, updated.created_at), (space.id, Some(ann.user.id), space.created_at));
        let patch = FidgetPatch::new().kind("y").config(Some(json!({"space_id": Uuid::nil()}))).position(None);
        let updated = of_ann.fidgets().update_fidget(fidget.id, patch).expect("changed");
        assert_eq!((updated.id, updated.space_id, updated.created_at), (fidget.id, Some(space.id), fidget.created_at));
        // save_positions of another own space does not move the fidget.
        let other = of_ann.spaces().create_space(NewSpace::named("other")).expect("a space");
        let moved = of_ann.fidgets().save_positions(other.id, [(fidget.id, Some(json!(1)))].into());
        assert_fails(moved, ErrorKind::NotFound, None, "Save positions failed: Record not found");
    }

    fn sql_in_a_text_is_plain_text(db: &TestDatabase) {
        let hidden = db.space();
        db.fidget(hidden.id, "theirs");
        let (ann, of_ann) = sign_up(db, "ann@town.example");
        let mut made = Vec::new();
        for text in TEXTS {
            let space = of_ann.spaces().create_space(NewSpace::named(text).description(text)).expect("a space");
            assert_eq!((space.name.as_str(), space.owner_id), (text, Some(ann.user.id)));
            let updated = of_ann.spaces().update_space(space.id, SpacePatch::new().name(format!("{text}{text}")));
            assert_eq!(updated.expect("changed").name, format!("{text}{text}"));
            let new = NewFidget::of_type(text).config(json!({text: text}));
            let fidget = of_ann.fidgets().create_fidget(space.id, new).expect("a fidget");
            assert_eq!(fidget.config, Some(json!({text: text})));
            let registration = NewRegistration::new(space.id, text, SpaceType::Token);
            of_ann.communities().register_space(registration).expect("registered");
            let communities = of_ann.communities();
            assert_eq!(communities.resolve_community(text).expect("an answer"), None, "{text}");
            assert_eq!(communities.get_active_community_config(text).expect("an answer"), None, "{text}");
            let refused = communities.update_navigation(text, None).expect_err("no key");
            assert_eq!(refused.kind(), ErrorKind::Forbidden, "{text}");
            db.service.communities().save_community_config(text, required()).expect("saved");
            assert!(communities.get_active_community_config(text).expect("an answer").is_some(), "{text}");
            made.push(space.id);
        }
        let own = of_ann.spaces().get_user_spaces(ann.user.id).expect("a list");
        assert_eq!(own.len(), made.len());
        assert_eq!(db.service.spaces().get_space(hidden.id).expect("as it was"), hidden);
        assert!(of_ann.spaces().get_space(hidden.id).is_err());
    }

    fn sql_in_an_address_is_plain_text(db: &TestDatabase) {
        let auth = db.service.auth();
        sign_up(db, "ann@town.example");
        for (number, local) in
            ["'or'1'='1'--", "x'union/**/select/**/1--", "$1", "%", "'||'a"].iter().enumerate()
        {
            let address = format!("{local}@town{number}.example");
            let session = sign_up(db, &address).0;
            assert_eq!(session.user.email, address);
            assert!(auth.sign_in(&address, "another password").is_err());
        }
        for local in ["x';drop/**/table/**/users;--", "\"or\"\"=\""] {
            let refused = auth.sign_up(&format!("{local}@town.example"), PASSWORD).map(drop);
            assert_fails(refused, ErrorKind::InvalidInput, None, "Sign up failed: email is not an e-mail address");
        }
        for text in TEXTS {
            for (address, password) in [(text, PASSWORD), ("ann@town.example", text)] {
                let refused = auth.sign_in(address, password);
                assert_fails(refused, ErrorKind::Unauthorized, None, "Sign in failed: Invalid login credentials");
            }
            db.clock.advance(std::time::Duration::from_secs(3_600));
        }
        assert_eq!(db.raw.count("users"), 6);
    }

    fn sql_in_a_token_is_plain_text(db: &TestDatabase) {
        let (session, _) = sign_up(db, "ann@town.example");
        let access = &session.access_token;
        let near =
            [format!("{access}0"), access[..67].to_owned(), access.to_uppercase(), format!(" {access}"), String::new()];
        let tokens = TEXTS.iter().map(ToString::to_string).chain(near).chain(["\0".into(), "a\0b".into()]);
        for token in tokens {
            let refused = db.client.as_user(&token).map(drop);
            assert_fails(refused, ErrorKind::Unauthorized, None, "Act as user failed: Session has ended");
            let refused = db.service.auth().refresh_session_of(&token).map(drop);
            assert_fails(refused, ErrorKind::Unauthorized, None, "Refresh session failed: Session has ended");
        }
        // Access and refresh token are not interchangeable.
        assert!(db.client.as_user(&session.refresh_token).is_err());
        assert!(db.service.auth().refresh_session_of(access).is_err());
        assert!(db.client.as_user(access).is_ok(), "and all that ended nothing");
    }

    fn a_nul_in_auth_input_is_refused_or_not_found(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, "ann@town.example");
        let auth = db.service.auth();
        let refused = [
            auth.sign_up("a\0nn@town.example", PASSWORD).map(drop),
            of_ann.spaces().create_space(NewSpace::named("\0")).map(drop),
            of_ann.communities().update_navigation("\0", None).map(drop),
            of_ann.communities().update_navigation("town", Some(json!({"\0": 1}))).map(drop),
            of_ann.communities().resolve_community("\0").map(drop),
            of_ann
                    .auth()
                    .link_identity(&json!({"publicKey": "\0", "signature": "\0", "timestamp": "\0", "userId": "\0"})),
        ];
        for (place, result) in refused.into_iter().enumerate() {
            assert_eq!(result.expect_err("a NUL").kind(), ErrorKind::InvalidInput, "call {place}");
        }
        let mut claim = identity_claim(ann.user.id, &"01".repeat(32), "town", db.now()).expect("a key");
        claim["userId"] = json!(format!("{}\0", ann.user.id));
        assert_eq!(of_ann.auth().link_identity(&claim).expect_err("changed").kind(), ErrorKind::Unauthorized);
        // A password may contain a NUL.
        auth.sign_up("bob@town.example", "pass\0word one").expect("signed up");
        assert!(auth.sign_in("bob@town.example", "pass\0word two").is_err());
        assert!(auth.sign_in("bob@town.example", "pass").is_err());
        assert!(auth.sign_in("bob@town.example", "pass\0word one").is_ok());
    }

    fn a_megabyte_of_auth_input_is_refused_or_stored(db: &TestDatabase) {
        let (_, of_ann) = sign_up(db, "ann@town.example");
        let long = "a".repeat(1 << 20);
        let address = format!("{long}@town.example");
        let auth = db.service.auth();
        let refused = auth.sign_up(&address, PASSWORD).expect_err("too long");
        assert_eq!((refused.kind(), refused.to_string().len() < 200), (ErrorKind::InvalidInput, true));
        for (address, password) in [(address.as_str(), PASSWORD), ("ann@town.example", long.as_str())] {
            let refused = auth.sign_in(address, password);
            assert_fails(refused, ErrorKind::Unauthorized, None, "Sign in failed: Invalid login credentials");
        }
        let refused = auth.sign_up("bob@town.example", &long).expect_err("too long");
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(db.client.as_user(&long).is_err());
        let refused = of_ann.communities().update_navigation(&long, None).expect_err("too long");
        assert_eq!(refused.code(), Some("22001"));
        assert_eq!(of_ann.communities().resolve_community(&long).expect("an answer"), None);
        let refused = of_ann.spaces().create_space(NewSpace::named(&*long)).expect_err("too long");
        assert_eq!(refused.kind(), ErrorKind::TooLarge);
        let space = NewSpace::named("long").description(&*long);
        let space = of_ann.spaces().create_space(space).expect("a description may be long");
        assert_eq!(space.description.map(|text| text.len()), Some(1 << 20));
        assert!(handle(db, "ann@town.example").0.user.email.len() < 100);
    }
}
