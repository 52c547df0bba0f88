//! JSON columns return any JSON value unchanged; both engines refuse the same values.

use serde_json::{Value, json};
use townsquare::{
    ErrorKind,
    communities::CommunityPatch,
    spaces::{Change, FidgetPatch, NewFidget, parse_json},
};
use townsquare_tests::{
    Rng, on_both_engines,
    test_database::{TestDatabase, nested, required},
};

fn write_and_read(db: &TestDatabase, value: &Value) -> Value {
    let space = db.space();
    let fidget = NewFidget::of_type("x").config(value.clone()).position(value.clone());
    let made = db.service.fidgets().create_fidget(space.id, fidget).expect("created");
    assert_eq!(made.config, made.position);
    let read = db.service.fidgets().get_fidget(made.id).expect("read");
    assert_eq!(read, made);
    read.config.expect("a value")
}

on_both_engines! {
    fn any_json_value_is_returned_unchanged(db: &TestDatabase) {
        let values = [
            json!(null),
            json!(true),
            json!(0),
            json!(-1),
            json!(i64::MIN),
            json!(i64::MAX),
            json!(u64::MAX),
            json!(9_007_199_254_740_993_i64),
            json!(0.5),
            json!(""),
            json!("\u{1}\u{1f}\u{7f}\"\\/\n\t\u{2028}"),
            json!("żółć 日本語 🏳️‍🌈 \u{10ffff} \u{fffd} العربية"),
            json!([]),
            json!({}),
            json!({"": {"": [null]}}),
            json!([1, "1", 1.5, [true], {"a": null}]),
            json!({"b": 1, "a": 2, "B": 3, "é": 4, "a b": 5, "$1": 6, "'": 7, "\"": 8}),
            json!("{\"not\": \"parsed\"}"),
        ];
        for value in &values {
            assert_eq!(&write_and_read(db, value), value);
        }
        let all = Value::from(values.to_vec());
        assert_eq!(write_and_read(db, &all), all);
    }

    fn floats_are_returned_bit_for_bit(db: &TestDatabase) {
        let mut random = Rng::with_seed(4);
        let mut floats = vec![1e15, 1e16, 2_f64.powi(60), -(2_f64.powi(63)), 2_f64.powi(64), 1e22, 0.1 + 0.2, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1.0 / 3.0, 1e-7, 123_456_789.123_456_78];
        while floats.len() < 500 {
            let float = f64::from_bits(random.u64(..));
            if float.is_finite() {
                floats.push(float);
            }
        }
        let back = write_and_read(db, &json!(floats));
        let back: Vec<f64> =
            back.as_array().expect("a list").iter().map(|float| float.as_f64().expect("a float")).collect();
        let changed: Vec<_> =
            floats.iter().zip(&back).filter(|(one, other)| one.to_bits() != other.to_bits()).collect();
        assert!(changed.is_empty(), "{} of 500 changed, such as {:?}", changed.len(), changed[0]);
    }

    fn numbers_that_parse_json_accepts_come_back_equal(db: &TestDatabase) {
        for text in [
            "0", "-0.0", "1.10", "100e-2", "1E+2", "1e16", "1e22", "1e23", "5e-324", "1.7976931348623157e308",
            "-9223372036854775808", "18446744073709551615", "9007199254740993", "1152921504606847000.0",
        ] {
            let value = parse_json("config", text).expect(text);
            assert_eq!(write_and_read(db, &value), value, "{text}");
        }
        for text in ["18446744073709551616", "-9223372036854775809", "1e400", "0.10000000000000000001", "9007199254740993.0"] {
            let error = parse_json("config", text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.message().starts_with("config has a"), "{error}");
        }
    }

    fn json_of_a_hundred_levels_is_returned_unchanged(db: &TestDatabase) {
        let deep = nested(100);
        assert_eq!(write_and_read(db, &deep), deep);
    }

    fn json_over_a_hundred_levels_is_refused(db: &TestDatabase) {
        let space = db.space();
        let fidget = db.fidget(space.id, "x");
        let fidgets = db.service.fidgets();
        for depth in [101, 127, 200] {
            let deep = nested(depth);
            let refused = |result: townsquare::Result<()>, prefix: &str, name: &str| {
                let error = result.expect_err("too deep");
                assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, None), "{error:?}");
                assert!(error.to_string().starts_with(prefix) && error.message().contains(name), "{error}");
            };
            let new = NewFidget::of_type("x").config(deep.clone());
            refused(fidgets.create_fidget(space.id, new).map(drop), "Create fidget failed: ", "config");
            let patch = FidgetPatch::new().position(Some(deep.clone()));
            refused(fidgets.update_fidget(fidget.id, patch).map(drop), "Update fidget failed: ", "position");
            let positions = [(fidget.id, Some(deep.clone()))].into();
            refused(fidgets.save_positions(space.id, positions).map(drop), "Save positions failed: ", "position");
            let mut patch = required();
            patch.ui_config = Change::Set(deep.clone());
            let saved = db.service.communities().save_community_config("town", patch).map(drop);
            refused(saved, "Save community config failed: ", "ui_config");
            let moved = db.service.communities().update_navigation("town", Some(deep.clone())).map(drop);
            refused(moved, "Update navigation failed: ", "navigation_config");
        }
        assert_eq!(fidgets.get_space_fidgets(space.id).expect("a list"), [fidget]);
        assert_eq!(db.raw.count("community_configs"), 0);
    }

    fn a_nul_anywhere_in_json_is_refused(db: &TestDatabase) {
        let space = db.space();
        for bad in [json!("\0"), json!({"a\0b": 1}), json!([[{"a": ["x\0"]}]])] {
            let new = NewFidget::of_type("x").position(bad.clone());
            let error = db.service.fidgets().create_fidget(space.id, new).expect_err("a NUL");
            assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, None), "{error:?}");
            let mut patch = CommunityPatch::new();
            patch.brand_config = Change::Set(bad);
            let error = db.service.communities().save_community_config("town", patch).expect_err("a NUL");
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.message().contains("brand_config"), "{error}");
        }
        // The six characters of an escape are not a NUL.
        assert_eq!(write_and_read(db, &json!("\\u0000")), json!("\\u0000"));
    }

    fn a_large_json_value_is_returned_unchanged(db: &TestDatabase) {
        let db = &TestDatabase::with(db.engine, |config| config.max_json_size(4 << 20)).expect("the engine is there");
        let large = json!({"rows": (0..50_000).collect::<Vec<_>>(), "text": "é".repeat(500_000)});
        assert_eq!(write_and_read(db, &large), large);
    }
}
