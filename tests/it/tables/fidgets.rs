//! Fidgets (SPEC 2.7): inserts, reads, updates, deletes, and saving all positions of a space.

use std::{collections::BTreeMap, time::Duration};

use jiff::SignedDuration;
use serde_json::{Value, json};
use townsquare::{
    ErrorKind, Uuid,
    spaces::{Change, FidgetPatch, NewFidget},
};
use townsquare_tests::{on_both_engines, test_database::assert_fails};

on_both_engines! {
    fn a_created_fidget_is_returned_and_can_be_read(db: &TestDatabase) {
        let space = db.space();
        let fidget = NewFidget::of_type("clock").config(json!({"zone": "UTC"})).position(json!([1, 2]));
        let fidget = db.service.fidgets().create_fidget(space.id, fidget).expect("created");
        assert_eq!((fidget.space_id, fidget.kind.as_str()), (Some(space.id), "clock"));
        assert_eq!(
            (fidget.config.clone(), fidget.position.clone()),
            (Some(json!({"zone": "UTC"})), Some(json!([1, 2])))
        );
        assert_eq!((fidget.created_at, fidget.updated_at), (db.now(), db.now()));
        assert_eq!(db.service.fidgets().get_fidget(fidget.id).expect("read"), fidget);
        let bare = db.service.fidgets().create_fidget(space.id, NewFidget::of_type("bare")).expect("created");
        assert_eq!((bare.config, bare.position), (None, None));
        let row = format!("SELECT config, position FROM fidgets WHERE id = '{}'", bare.id);
        assert_eq!(db.raw.rows(&row), [vec![None, None]], "SQL NULL, no JSON null");
    }

    fn pages_of_fidgets_have_each_fidget_once_in_the_order_of_the_list(db: &TestDatabase) {
        let (space, other) = (db.space(), db.space());
        let times = ["NULL", "'2020-01-01T00:00:00.000001Z'", "'2020-01-01T00:00:00.000002Z'"];
        for number in 0..50_u128 {
            let id = Uuid::from_u128((number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835));
            let (time, space) = (times[usize::try_from(number % 3).expect("small")], [space.id, other.id][usize::from(number > 40)]);
            db.raw.run(&format!(
                "INSERT INTO fidgets (id, space_id, type, created_at) VALUES ('{id}', '{space}', '{number}', {time})"
            ));
        }
        let fidgets = db.service.fidgets();
        let all = fidgets.get_space_fidgets(space.id).expect("a list");
        for size in [1, 2, 7, 1_000] {
            let mut seen: Vec<townsquare::spaces::Fidget> = Vec::new();
            loop {
                let after = seen.last().map(Into::into);
                let page = fidgets.get_space_fidgets_after(space.id, size, after).expect("a page");
                assert!(page.len() <= size as usize && seen.len() <= all.len());
                if page.is_empty() {
                    break;
                }
                seen.extend(page);
            }
            assert_eq!(seen, all, "pages of {size}");
        }
        let by_id = fidgets.get_space_fidgets_after(space.id, 2, Some(all[3].id.into())).expect("a page");
        assert_eq!(by_id, all[4..6]);
        let dated = all.iter().position(|fidget| fidget.created_at.as_second() > 1).expect("a fidget with a time");
        fidgets.delete_fidget(all[dated].id).expect("deleted");
        let after = fidgets.get_space_fidgets_after(space.id, 2, Some((&all[dated]).into())).expect("a page");
        assert_eq!(after, all[dated + 1..dated + 3], "a page after a fidget that was deleted");
        for unknown in [all[dated].id, Uuid::nil(), fidgets.get_space_fidgets(other.id).expect("a list")[0].id] {
            let message = format!("Get space fidgets failed: after names no fidget of the space: {unknown}");
            let page = fidgets.get_space_fidgets_after(space.id, 2, Some(unknown.into()));
            assert_fails(page, ErrorKind::InvalidInput, None, &message);
        }
        for limit in [0, 1_001] {
            let page = fidgets.get_space_fidgets_after(space.id, limit, None);
            let message = format!("Get space fidgets failed: limit is 1 to 1000, not {limit}");
            assert_fails(page, ErrorKind::InvalidInput, None, &message);
        }
        let anonymous = db.client.fidgets().get_space_fidgets_after(space.id, 10, None).expect("a page");
        assert_eq!(anonymous, [], "the space is private");
        let after = db.client.fidgets().get_space_fidgets_after(space.id, 10, Some((&all[0]).into()));
        assert_eq!(after.expect("a page"), []);
    }

    fn a_row_inserted_by_plain_sql_gets_the_column_defaults(db: &TestDatabase) {
        db.raw.run("INSERT INTO fidgets (type) VALUES ('by hand')");
        let id: Uuid = db.raw.value("SELECT id FROM fidgets").parse().expect("a uuid");
        let fidget = db.service.fidgets().get_fidget(id).expect("read");
        assert_eq!(
            (fidget.kind.as_str(), fidget.space_id, fidget.config, fidget.position),
            ("by hand", None, None, None)
        );
        assert!(jiff::Timestamp::now().duration_since(fidget.created_at).abs() < SignedDuration::from_mins(5));
    }

    fn an_update_changes_only_the_named_columns(db: &TestDatabase) {
        let space = db.space();
        let fidget = NewFidget::of_type("a").config(json!(1)).position(json!(2));
        let fidget = db.service.fidgets().create_fidget(space.id, fidget).expect("created");
        let mut expected = fidget.clone();
        type Step = (FidgetPatch, fn(&mut townsquare::spaces::Fidget));
        let steps: [Step; 5] = [
            (FidgetPatch::new().kind("b"), |fidget| "b".clone_into(&mut fidget.kind)),
            (FidgetPatch::new().config(Some(json!({"k": []}))), |fidget| fidget.config = Some(json!({"k": []}))),
            (FidgetPatch::new().position(None), |fidget| fidget.position = None),
            (FidgetPatch::new().config(None).position(Some(json!("p"))), |fidget| {
                (fidget.config, fidget.position) = (None, Some(json!("p")));
            }),
            (FidgetPatch::new().config(Some(Value::Null)), |fidget| fidget.config = Some(Value::Null)),
        ];
        for (patch, change) in steps {
            db.clock.advance(Duration::from_millis(1));
            change(&mut expected);
            expected.updated_at += Duration::from_millis(1);
            assert_eq!(db.service.fidgets().update_fidget(fidget.id, patch).expect("updated"), expected);
            assert_eq!(db.service.fidgets().get_fidget(fidget.id).expect("read"), expected);
        }
        let mut patch = FidgetPatch::new();
        patch.kind = Change::Clear;
        let refused = db.service.fidgets().update_fidget(fidget.id, patch);
        let sentence = "Update fidget failed: Required field is missing";
        assert_fails(refused, ErrorKind::FieldMissing, Some("23502"), sentence);
    }

    fn an_empty_update_changes_nothing_and_returns_the_row(db: &TestDatabase) {
        let fidget = db.fidget(db.space().id, "clock");
        db.clock.advance(Duration::from_secs(9));
        let same = db.service.fidgets().update_fidget(fidget.id, FidgetPatch::new()).expect("the row");
        assert_eq!(same, fidget);
        let missing = db.service.fidgets().update_fidget(Uuid::new_v4(), FidgetPatch::new());
        assert_fails(missing, ErrorKind::NotFound, None, "Update fidget failed: Record not found");
    }

    fn updated_at_grows_with_every_update(db: &TestDatabase) {
        let fidget = db.fidget(db.space().id, "clock");
        let mut last = fidget.updated_at;
        for step in [0, -3_600, 0, 7_200, -86_400] {
            db.clock.step(SignedDuration::from_secs(step));
            let patch = FidgetPatch::new().kind("clock");
            let updated = db.service.fidgets().update_fidget(fidget.id, patch).expect("updated");
            let positions = BTreeMap::from([(fidget.id, Some(json!(1)))]);
            let moved = db.service.fidgets().save_positions(fidget.space_id.expect("in a space"), positions);
            let moved = moved.expect("moved").remove(0);
            assert!(last < updated.updated_at && updated.updated_at < moved.updated_at);
            last = moved.updated_at;
        }
    }

    fn a_fidget_needs_a_type_and_a_space_that_exists(db: &TestDatabase) {
        let space = db.space();
        let bare = db.service.fidgets().create_fidget(space.id, NewFidget::default());
        let sentence = "Create fidget failed: Required field is missing";
        assert_fails(bare, ErrorKind::FieldMissing, Some("23502"), sentence);
        let lost = db.service.fidgets().create_fidget(Uuid::new_v4(), NewFidget::of_type("clock"));
        let sentence = "Create fidget failed: Referenced record not found";
        assert_fails(lost, ErrorKind::ReferenceMissing, Some("23503"), sentence);
        assert_eq!(db.raw.count("fidgets"), 0);
    }

    fn a_deleted_fidget_is_not_found(db: &TestDatabase) {
        let space = db.space();
        let (fidget, kept) = (db.fidget(space.id, "a"), db.fidget(space.id, "b"));
        db.service.fidgets().delete_fidget(fidget.id).expect("deleted");
        assert_eq!(db.service.fidgets().get_space_fidgets(space.id).expect("a list"), [kept]);
        let again = db.service.fidgets().delete_fidget(fidget.id);
        assert_fails(again, ErrorKind::NotFound, None, "Delete fidget failed: Record not found");
        let gone = db.service.fidgets().get_fidget(fidget.id);
        assert_fails(gone, ErrorKind::NotFound, None, "Get fidget failed: Record not found");
    }

    fn fidgets_of_a_space_are_oldest_first(db: &TestDatabase) {
        let (space, other) = (db.space(), db.space());
        let mut made = Vec::new();
        for index in 0..9 {
            made.push(db.fidget(space.id, &format!("{index}")));
            db.fidget(other.id, "other");
            if index % 3 == 2 {
                db.clock.step(SignedDuration::from_micros(-1));
            }
        }
        made.sort_by_key(|fidget| (fidget.created_at, fidget.id));
        assert_eq!(db.service.fidgets().get_space_fidgets(space.id).expect("a list"), made);
        assert_eq!(db.service.fidgets().get_space_fidgets(Uuid::new_v4()).expect("no such space"), []);
    }

    fn save_positions_saves_all_positions(db: &TestDatabase) {
        let space = db.space();
        let made: Vec<_> = (0..20)
            .map(|index| {
                db.clock.advance(Duration::from_micros(1));
                db.fidget(space.id, &format!("{index}"))
            })
            .collect();
        db.clock.advance(Duration::from_secs(1));
        let positions =
            made[..10].iter().enumerate().map(|(x, fidget)| (fidget.id, (x > 0).then(|| json!({ "x": x }))));
        let moved = db.service.fidgets().save_positions(space.id, positions.collect()).expect("moved");
        let now = moved[0].updated_at;
        for (x, (before, after)) in made.iter().zip(&moved).enumerate() {
            let mut expected = before.clone();
            expected.position = (x > 0).then(|| json!({ "x": x }));
            expected.updated_at = now;
            assert_eq!(after, &expected, "oldest first");
        }
        assert_eq!(moved.len(), 10);
        let all = db.service.fidgets().get_space_fidgets(space.id).expect("a list");
        assert_eq!((&all[..10], &all[10..]), (&moved[..], &made[10..]));
        let none = db.service.fidgets().save_positions(space.id, BTreeMap::new()).expect("nothing to do");
        assert_eq!(none, []);
    }

    fn save_positions_with_a_foreign_fidget_changes_nothing(db: &TestDatabase) {
        let (space, other) = (db.space(), db.space());
        let own: Vec<_> = (0..5).map(|_| db.fidget(space.id, "own")).collect();
        let strange = db.fidget(other.id, "strange");
        let before = db.service.fidgets().get_space_fidgets(space.id).expect("a list");
        for bad in [strange.id, Uuid::nil(), Uuid::max()] {
            let mut positions: BTreeMap<_, _> = own.iter().map(|fidget| (fidget.id, Some(json!(1)))).collect();
            positions.insert(bad, Some(json!(2)));
            let refused = db.service.fidgets().save_positions(space.id, positions);
            assert_fails(refused, ErrorKind::NotFound, None, "Save positions failed: Record not found");
        }
        assert_eq!(db.service.fidgets().get_space_fidgets(space.id).expect("a list"), before);
        assert_eq!(db.service.fidgets().get_fidget(strange.id).expect("read"), strange);
    }

    fn create_fidgets_is_all_or_nothing(db: &TestDatabase) {
        let space = db.space();
        let good = |kind: &str| NewFidget::of_type(kind).config(json!({"of": kind}));
        for at in [0, 1, 2] {
            let mut fidgets = vec![good("a"), good("b")];
            fidgets.insert(at, NewFidget::default());
            let refused = db.service.fidgets().create_fidgets(space.id, fidgets);
            let sentence = "Create fidgets failed: Required field is missing";
            assert_fails(refused, ErrorKind::FieldMissing, Some("23502"), sentence);
        }
        let lost = db.service.fidgets().create_fidgets(Uuid::new_v4(), vec![good("a")]);
        let sentence = "Create fidgets failed: Referenced record not found";
        assert_fails(lost, ErrorKind::ReferenceMissing, Some("23503"), sentence);
        assert_eq!(db.raw.count("fidgets"), 0);
        let made = db.service.fidgets().create_fidgets(space.id, vec![good("a"), good("b"), good("a")]);
        let made = made.expect("created");
        assert_eq!(made.iter().map(|fidget| fidget.kind.as_str()).collect::<Vec<_>>(), ["a", "b", "a"]);
        let mut sorted = made;
        sorted.sort_by_key(|fidget| (fidget.created_at, fidget.id));
        assert_eq!(db.service.fidgets().get_space_fidgets(space.id).expect("a list"), sorted);
    }
}
