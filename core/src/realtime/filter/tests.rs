//! Tests of the filters: each operator on each type, NULL, quoting, order, patterns, hostile text, and a naive model.

use serde_json::json;

use super::*;
use crate::error::ErrorKind;

const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";
const OTHER_ID: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";

fn row(value: Json) -> RowImage {
    let Json::Object(row) = value else { panic!("a row is an object") };
    row
}

fn matches(table: Table, filter: &str, image: Json) -> bool {
    ChangeFilter::parse(table, Caller::Service, filter)
        .unwrap_or_else(|error| panic!("{filter}: {error}"))
        .matches(&row(image))
}

fn refusal(table: Table, filter: &str) -> String {
    let error = ChangeFilter::parse(table, Caller::Service, filter).expect_err(filter);
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{filter}");
    error.to_string()
}

#[test]
fn each_comparison_follows_the_order_of_each_type() {
    let cases = [
        (Table::Files, "size", ["9", "10", "11"], [json!(9), json!(10), json!(11)]),
        (Table::Spaces, "name", ["A", "a", "ä"], [json!("A"), json!("a"), json!("ä")]),
        (
            Table::Spaces,
            "created_at",
            ["2026-01-01T00:00:00Z", "2026-01-01T02:00:01+02:00", "2026-01-01T00:00:01.000001Z"],
            [
                json!("2026-01-01T00:00:00.000000Z"),
                json!("2026-01-01T00:00:01.000000Z"),
                json!("2026-01-01T00:00:01.000001Z"),
            ],
        ),
    ];
    for (table, column, written, held) in cases {
        for (held_at, held) in held.iter().enumerate() {
            for (written_at, written) in written.iter().enumerate() {
                let expected = [
                    ("eq", held_at == written_at),
                    ("neq", held_at != written_at),
                    ("lt", held_at < written_at),
                    ("lte", held_at <= written_at),
                    ("gt", held_at > written_at),
                    ("gte", held_at >= written_at),
                ];
                for (operator, expected) in expected {
                    let filter = format!("{column}={operator}.{written}");
                    assert_eq!(matches(table, &filter, json!({column: held})), expected, "{filter} on {held}");
                }
            }
        }
    }
}

#[test]
fn text_compares_by_code_point() {
    // In UTF-16 the character after the surrogates would come first.
    assert!(matches(Table::Spaces, "name=gt.\u{FFFD}", json!({"name": "\u{1F600}"})));
    assert!(matches(Table::Spaces, "name=lt.a", json!({"name": "Z"})));
    assert!(matches(Table::Spaces, "name=gt.z", json!({"name": "é"})));
}

#[test]
fn a_uuid_matches_in_every_spelling_of_the_filter() {
    for spelling in [ID.to_owned(), ID.to_uppercase(), ID.replace('-', ""), format!("{{{ID}}}")] {
        assert!(matches(Table::Spaces, &format!("id=eq.{spelling}"), json!({"id": ID})), "{spelling}");
        assert!(!matches(Table::Spaces, &format!("id=eq.{spelling}"), json!({"id": OTHER_ID})), "{spelling}");
    }
}

#[test]
fn a_comparison_with_null_is_not_true() {
    for operator in ["eq", "neq", "lt", "lte", "gt", "gte", "like", "ilike"] {
        for image in [json!({"description": null}), json!({})] {
            assert!(!matches(Table::Spaces, &format!("description={operator}.x"), image), "{operator}");
        }
    }
    assert!(!matches(Table::Spaces, "description=in.(x)", json!({"description": null})));
    assert!(!matches(Table::Spaces, "is_public=neq.true", json!({"is_public": null})));
    assert!(matches(Table::Spaces, "is_public=neq.true", json!({"is_public": false})));
}

#[test]
fn is_tells_null_true_and_false_apart() {
    for (value, expected) in [("null", json!(null)), ("true", json!(true)), ("false", json!(false))] {
        for held in [json!(null), json!(true), json!(false)] {
            let filter = format!("is_public=is.{value}");
            assert_eq!(
                matches(Table::Spaces, &filter, json!({"is_public": held})),
                held == expected,
                "{filter} {held}"
            );
        }
    }
    assert!(matches(Table::Fidgets, "config=is.null", json!({"config": null})));
    assert!(!matches(Table::Fidgets, "config=is.null", json!({"config": {"a": null}})));
    assert!(matches(Table::CommunityConfigs, "admin_identity_public_keys=is.null", json!({})));
}

#[test]
fn in_matches_each_of_its_values_and_nothing_else() {
    let filter = "name=in.(plain,\"a,b\",\"c)\\\"d\\\\\",)";
    for (name, expected) in [("plain", true), ("a,b", true), ("c)\"d\\", true), ("", true), ("a", false), ("b", false)]
    {
        assert_eq!(matches(Table::Spaces, filter, json!({"name": name})), expected, "{name}");
    }
    assert!(!matches(Table::Spaces, "name=in.()", json!({"name": ""})));
    assert!(matches(Table::Spaces, &format!("id=in.({OTHER_ID},{ID})"), json!({"id": ID})));
    assert!(matches(Table::Files, "size=in.(10,9,1)", json!({"size": 9})));
}

#[test]
fn quotes_carry_every_character() {
    let held = json!({"name": "a&b=eq.\"c\"\\,()", "is_public": true});
    assert!(matches(Table::Spaces, r#"name=eq."a&b=eq.\"c\"\\,()"&is_public=is.true"#, held.clone()));
    assert!(!matches(Table::Spaces, r#"name=eq."a&b=eq.\"c\"\\,()"&is_public=is.false"#, held));
    // Without an opening quote, everything up to `&` is the value.
    assert!(matches(Table::Spaces, r#"name=eq.a"b.c=(d,e)\"#, json!({"name": r#"a"b.c=(d,e)\"#})));
    assert!(matches(Table::Spaces, "name=eq.", json!({"name": ""})));
    assert!(matches(Table::Spaces, "name=eq.\"\"", json!({"name": ""})));
}

#[test]
fn like_matches_whole_texts_with_wildcards_and_escapes() {
    let cases = [
        ("abc", "abc", true),
        ("abc", "abcd", false),
        ("a%", "a", true),
        ("a*", "abc", true),
        ("%c", "abc", true),
        ("%b%", "abc", true),
        ("a%bc%bc", "abc", false),
        ("a%bc%bc", "abcbc", true),
        ("_", "é", true),
        ("_", "", false),
        ("__", "😀", false),
        ("%_b_%", "xxabcxx", true),
        ("%_b_", "bxb", false),
        ("%", "", true),
        ("", "", true),
        ("", "a", false),
        (r"100\%", "100%", true),
        (r"100\%", "1000", false),
        (r"\*\_\\", r"*_\", true),
        ("A%", "abc", false),
    ];
    for (pattern, text, expected) in cases {
        let filter = format!("name=like.{pattern}");
        assert_eq!(matches(Table::Spaces, &filter, json!({"name": text})), expected, "{pattern} on {text}");
    }
}

#[test]
fn ilike_folds_the_case_of_unicode() {
    for (pattern, text, expected) in [
        ("HARB%", "harbour", true),
        ("ärger", "ÄRGER", true),
        ("ΟΔΟΣ", "οδος", true),
        ("ПРИВЕТ", "привет", true),
        ("k", "\u{212A}", true),
        ("ı", "i", false),
        ("strasse", "straße", false),
        ("STRAßE", "straße", true),
    ] {
        let filter = format!("name=ilike.{pattern}");
        assert_eq!(matches(Table::Spaces, &filter, json!({"name": text})), expected, "{pattern} on {text}");
    }
}

#[test]
fn conditions_are_joined_by_and() {
    let filter = "name=like.H%&is_public=is.true&created_at=gte.2026-01-01T00:00:00Z";
    let image = |name, public, year| json!({"name": name, "is_public": public, "created_at": format!("{year}-06-01T00:00:00.000000Z")});
    assert!(matches(Table::Spaces, filter, image("Harbor", true, 2026)));
    assert!(!matches(Table::Spaces, filter, image("Town", true, 2026)));
    assert!(!matches(Table::Spaces, filter, image("Harbor", false, 2026)));
    assert!(!matches(Table::Spaces, filter, image("Harbor", true, 2025)));
}

#[test]
fn a_value_of_another_type_in_the_row_does_not_match() {
    assert!(!matches(Table::Files, "size=eq.1", json!({"size": "1"})));
    assert!(!matches(Table::Spaces, "name=neq.x", json!({"name": 1})));
    assert!(!matches(Table::Spaces, "created_at=lt.2027-01-01T00:00:00Z", json!({"created_at": "yesterday"})));
}

#[test]
fn every_row_matches_the_empty_filter() {
    assert!(matches(Table::Spaces, "", json!({"name": "Harbor"})));
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let cases = [
        ("colour=eq.red", r#"filter names no column of spaces: "colour""#),
        ("Name=eq.x", r#"filter names no column of spaces: "Name""#),
        ("name=equals.x", r#"filter has an unknown operator for name: "equals""#),
        ("id=eq.harbor", "filter has a value for id that is not a uuid"),
        ("id=eq.", "filter has a value for id that is not a uuid"),
        ("id=in.(harbor)", "filter has a value for id that is not a uuid"),
        ("id=like.a%", "filter uses the operator like on id, whose type is a uuid"),
        ("is_public=eq.1", "filter has a value for is_public that is not true or false"),
        ("created_at=gt.2026-01-01", "filter has a value for created_at that is not a time of RFC 3339 with an offset"),
        ("name=is.true", "filter has a value for name that is not null"),
        ("name=is.unknown", "filter has a value for name that is not null, true or false"),
        ("name", "filter is not of the form column=operator.value"),
        ("name=eq", "filter is not of the form column=operator.value"),
        ("name=eq.x&", "filter is not of the form column=operator.value"),
        ("name=eq.\"x", "filter has a quoted value without its closing quote"),
        ("name=eq.\"x\\\"", "filter has a quoted value without its closing quote"),
        ("name=eq.\"x\"y", "filter goes on after the end of a value without &"),
        ("name=in.x", "filter has no list in parentheses after in."),
        ("name=in.(x", "filter has a list whose values are not separated by commas and ended by )"),
        ("name=in.(x(y))", "filter has a list whose values are not separated by commas and ended by )"),
        ("name=in.(x)y", "filter goes on after the end of a value without &"),
        ("name=eq.\0", "filter contains a NUL character"),
        (
            r"name=like.a\",
            "filter has a value for name that is not a pattern of at most 256 characters that does not end with a backslash",
        ),
    ];
    for (filter, message) in cases {
        assert_eq!(refusal(Table::Spaces, filter), message, "{filter:?}");
    }
    assert!(refusal(Table::Fidgets, "config=eq.{}").contains("config, whose type is JSON"));
    assert!(refusal(Table::Fidgets, "config=is.true").contains("not null"));
    assert!(refusal(Table::Files, "size=eq.9223372036854775808").contains("an integer"));
    assert!(refusal(Table::Files, "access=eq.public").contains("no column"), "a column of the policies only");
    assert!(refusal(Table::Spaces, &format!("name=like.{}", "a".repeat(257))).contains("256"));
    let of_bytes = |count: usize| format!("name=eq.{}", "a".repeat(count - 8));
    assert!(ChangeFilter::parse(Table::Spaces, Caller::Service, &of_bytes(1_024)).is_ok());
    assert_eq!(refusal(Table::Spaces, &of_bytes(1_025)), "filter has 1025 bytes; the limit is 1024");
    let of_conditions = |count: usize| vec!["name=neq.a"; count].join("&");
    assert!(ChangeFilter::parse(Table::Spaces, Caller::Service, &of_conditions(8)).is_ok());
    assert_eq!(refusal(Table::Spaces, &of_conditions(9)), "filter has 9 conditions; the limit is 8");
    assert!(refusal(Table::Spaces, &format!("{}=eq.x", "a".repeat(1_000))).len() < 120);
}

#[test]
fn the_equality_is_of_the_most_selective_type() {
    let equality = |table, filter: &str| {
        let filter = ChangeFilter::parse(table, Caller::Service, filter).expect("a filter");
        filter.equality().map(|equality| (equality.column.name, equality.value.clone()))
    };
    let text = |text: &str| Scalar::Text(text.to_owned().into());
    let upper = ID.to_uppercase();
    let found = equality(Table::Fidgets, &format!("type=eq.clock&space_id=eq.{upper}"));
    assert_eq!(found, Some(("space_id", text(ID))), "in the form of the images");
    assert_eq!(equality(Table::Fidgets, &format!("id=in.({ID})")), Some(("id", text(ID))));
    assert_eq!(equality(Table::Spaces, "name=eq.x&is_public=eq.true"), Some(("name", text("x"))));
    assert_eq!(equality(Table::Spaces, "is_public=eq.true"), Some(("is_public", Scalar::Boolean(true))));
    assert_eq!(equality(Table::Files, "cache_control=gt.1&size=eq.+7"), Some(("size", Scalar::Integer(7))));
    let time = Scalar::Timestamp("2026-01-01T00:00:00Z".parse().expect("a time"));
    let found = equality(Table::Files, "size=eq.7&updated_at=eq.2026-01-01T01:00:00+01:00");
    assert_eq!(found, Some(("updated_at", time)));
    for none in ["", "created_at=gt.2026-01-01T00:00:00Z", "name=neq.x", "name=in.(x,y)", "name=like.x", "name=is.null"]
    {
        assert_eq!(equality(Table::Spaces, none), None, "{none}");
    }
}

/// A generator of pseudo-random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).expect("below a usize")
    }

    fn text(&mut self, alphabet: &[char], longest: usize) -> String {
        (0..self.below(longest + 1)).map(|_| alphabet[self.below(alphabet.len())]).collect()
    }
}

/// `like`, by definition.
fn like(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%' | '*', rest @ ..] => (0..=text.len()).any(|skipped| like(rest, &text[skipped..])),
        ['_', rest @ ..] => !text.is_empty() && like(rest, &text[1..]),
        ['\\', escaped, rest @ ..] => text.first() == Some(escaped) && like(rest, &text[1..]),
        [character, rest @ ..] => text.first() == Some(character) && like(rest, &text[1..]),
    }
}

fn in_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[test]
fn random_filters_agree_with_a_naive_model() {
    let mut random = Random(12);
    let alphabet: Vec<char> = "ab%_*\\\"&,().=é".chars().collect();
    let mut seen = [0_u32; 2];
    for _ in 0..30_000 {
        let name = random.text(&alphabet, 5);
        let size = i64::try_from(random.below(4)).expect("small");
        let image = row(json!({"path": name, "size": if random.below(8) == 0 { Json::Null } else { json!(size) }}));
        let held = image["size"].as_i64();
        let mut written = Vec::new();
        let mut expected = true;
        for _ in 0..=random.below(2) {
            let value = random.text(&alphabet, 5);
            let number = i64::try_from(random.below(4)).expect("small");
            let (condition, holds) = match random.below(8) {
                0 => (format!("path=eq.{}", in_quotes(&value)), name == value),
                1 => (format!("path=neq.{}", in_quotes(&value)), name != value),
                2 => (format!("path=lt.{}", in_quotes(&value)), name.chars().lt(value.chars())),
                3 => (format!("path=in.({},{})", in_quotes(&value), in_quotes("a")), name == value || name == "a"),
                4 => (format!("size=gte.{number}"), held.is_some_and(|held| held >= number)),
                5 => (format!("size=neq.{number}"), held.is_some_and(|held| held != number)),
                6 => ("size=is.null".to_owned(), held.is_none()),
                _ => {
                    let escapes = value.chars().rev().take_while(|&character| character == '\\').count();
                    let pattern = if escapes % 2 == 1 { format!("{value}\\") } else { value };
                    let (characters, text): (Vec<_>, Vec<_>) = (pattern.chars().collect(), name.chars().collect());
                    (format!("path=like.{}", in_quotes(&pattern)), like(&characters, &text))
                }
            };
            written.push(condition);
            expected &= holds;
        }
        let written = written.join("&");
        let filter = ChangeFilter::parse(Table::Files, Caller::Service, &written)
            .unwrap_or_else(|error| panic!("{written}: {error}"));
        assert_eq!(filter.matches(&image), expected, "{written} on {image:?}");
        seen[usize::from(expected)] += 1;
    }
    assert!(seen.iter().all(|&count| count > 1_000), "both answers: {seen:?}");
}

#[test]
fn hostile_text_is_read_or_refused() {
    let mut random = Random(7);
    let alphabet: Vec<char> = "=.&()\",\\%_ \n\u{1F600}éa".chars().collect();
    let openings = ["", "name=", "name=eq.", "name=in.(", "name=like.", "id=in.(\"", "is_public=is.", "name=eq.\""];
    for _ in 0..50_000 {
        let text = format!("{}{}", openings[random.below(openings.len())], random.text(&alphabet, 12));
        match ChangeFilter::parse(Table::Spaces, Caller::Service, &text) {
            Ok(filter) => {
                let name = random.text(&alphabet, 12);
                filter.matches(&row(json!({"name": name, "id": ID, "is_public": true})));
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text:?}"),
        }
    }
}

/// A search that tries every place of the text for every character of the pattern takes minutes for these.
#[test]
fn segments_with_underscores_are_searched_in_one_pass() {
    let text = "a".repeat(8 << 20);
    let segment = format!("{}_", "a".repeat(120));
    for (end, expected) in [("b", false), ("a", true), ("_", true), ("ab", false)] {
        let filter = format!("name=like.%{segment}{end}%{segment}{end}%");
        assert_eq!(matches(Table::Spaces, &filter, json!({"name": text})), expected, "{filter}");
    }
}

#[test]
fn a_long_segment_is_found_at_its_leftmost_place() {
    let mut random = Random(11);
    let alphabet = ['a', 'b', 'é', '_'];
    let mut found = 0;
    for _ in 0..2_000 {
        // Up to four words of bits.
        let pattern: String =
            (0..1 + random.below(250)).map(|_| if random.below(3) == 0 { '_' } else { 'a' }).collect();
        let text = format!("b{}{}", "a".repeat(random.below(260)), random.text(&alphabet[..3], 5));
        let written = format!("%{pattern}%b%");
        let (characters, chars): (Vec<_>, Vec<_>) = (pattern.chars().collect(), text.chars().collect());
        let fits = |place: &[char]| characters.iter().zip(place).all(|(one, other)| *one == '_' || one == other);
        let leftmost = chars.windows(characters.len()).position(fits);
        let expected = leftmost.is_some_and(|place| chars[place + characters.len()..].contains(&'b'));
        assert_eq!(
            matches(Table::Spaces, &format!("name=like.{written}"), json!({"name": text})),
            expected,
            "{written}"
        );
        found += usize::from(expected);
    }
    assert!((100..1_900).contains(&found), "both answers: {found}");
}

#[test]
fn only_short_filters_without_patterns_are_cheap() {
    let is_costly =
        |filter: &str| ChangeFilter::parse(Table::Spaces, Caller::Service, filter).expect("a filter").is_costly();
    for cheap in ["", "is_public=is.true", "name=eq.a&is_public=is.true&name=gt.b"] {
        assert!(!is_costly(cheap), "{cheap}");
    }
    for costly in ["name=like.a", "is_public=is.true&name=ilike.%a_%", "name=gt.a&name=gt.b&name=gt.c&name=gt.d"] {
        assert!(is_costly(costly), "{costly}");
    }
}

#[test]
fn a_pattern_made_to_be_slow_is_matched() {
    let text = "a".repeat(1 << 16);
    let pattern = format!("%{}b%", "a%".repeat(120));
    assert!(!matches(Table::Spaces, &format!("name=like.{pattern}"), json!({"name": text})));
}

#[test]
fn a_column_that_the_caller_does_not_read_is_refused_like_an_unknown_one() {
    let table = Table::CommunityConfigs;
    for column in ["admin_email", "admin_identity_public_keys", "custom_domain_authorized"] {
        ChangeFilter::parse(table, Caller::Service, &format!("{column}=is.null"))
            .expect("the service reads every column");
        for caller in [Caller::Anonymous, Caller::User(uuid::Uuid::nil())] {
            for condition in ["is.null", "nonsense.1", "eq.x"] {
                let refusal = |column: &str| {
                    let error =
                        ChangeFilter::parse(table, caller, &format!("{column}={condition}")).expect_err("refused");
                    (error.kind(), error.to_string().replace(column, "x"))
                };
                assert_eq!(refusal(column), refusal("unknown"), "{column}={condition}");
            }
        }
    }
}

#[test]
fn a_row_with_only_its_key_may_match_whatever_its_other_columns_hold() {
    let fidget = row(json!({ "id": ID, "space_id": OTHER_ID, "type": "clock" }));
    let may_match = |filter: &str| {
        let filter = ChangeFilter::parse(Table::Fidgets, Caller::Anonymous, filter).expect("a filter");
        filter.may_match(Table::Fidgets, &fidget)
    };
    for filter in ["", "type=eq.map", "type=eq.clock", &format!("space_id=eq.{OTHER_ID}&type=like.x%")] {
        assert!(may_match(filter), "{filter}");
    }
    for filter in [format!("id=eq.{OTHER_ID}"), format!("space_id=eq.{ID}")] {
        assert!(!may_match(&filter), "{filter}");
    }
}
