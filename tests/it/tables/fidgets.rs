//! Fidgets (SPEC 2.7): rows in and out, and saving all positions of a space at once.

use std::{collections::BTreeMap, time::Duration};

use jiff::SignedDuration;
use serde_json::{Value, json};
use townsquare::{Change, ErrorKind, FidgetPatch, NewFidget, Uuid, blocking::wait};
use townsquare_tests::{
    on_both_engines,
    store::{Store, assert_fails},
    town::morning,
};

on_both_engines!(
    a_created_fidget_is_returned_and_can_be_read,
    a_row_of_another_program_gets_the_tables_defaults,
    an_update_changes_what_it_names_and_nothing_else,
    an_empty_update_changes_nothing_and_returns_the_row,
    updated_at_moves_with_every_update_and_never_back,
    a_fidget_needs_a_type_and_a_space_that_exists,
    a_deleted_fidget_is_gone,
    fidgets_of_a_space_are_oldest_first,
    positions_are_saved_together,
    positions_of_a_strange_fidget_change_nothing,
    fidgets_in_bulk_are_all_or_none,
);

fn a_created_fidget_is_returned_and_can_be_read(store: &Store) {
    let space = store.space();
    let fidget = NewFidget::of_type("clock").config(json!({"zone": "UTC"})).position(json!([1, 2]));
    let fidget = wait(store.service.fidgets().create_fidget(space.id, fidget)).expect("created");
    assert_eq!((fidget.space_id, fidget.kind.as_str()), (Some(space.id), "clock"));
    assert_eq!((fidget.config.clone(), fidget.position.clone()), (Some(json!({"zone": "UTC"})), Some(json!([1, 2]))));
    assert_eq!((fidget.created_at, fidget.updated_at), (morning(), morning()));
    assert_eq!(wait(store.service.fidgets().get_fidget(fidget.id)).expect("read"), fidget);
    let bare = wait(store.service.fidgets().create_fidget(space.id, NewFidget::of_type("bare"))).expect("created");
    assert_eq!((bare.config, bare.position), (None, None));
    let row = format!("SELECT config, position FROM fidgets WHERE id = '{}'", bare.id);
    assert_eq!(store.outside.rows(&row), [vec![None, None]], "SQL NULL, no JSON null");
}

fn a_row_of_another_program_gets_the_tables_defaults(store: &Store) {
    store.outside.run("INSERT INTO fidgets (type) VALUES ('by hand')");
    let id: Uuid = store.outside.value("SELECT id FROM fidgets").parse().expect("a uuid");
    let fidget = wait(store.service.fidgets().get_fidget(id)).expect("read");
    assert_eq!((fidget.kind.as_str(), fidget.space_id, fidget.config, fidget.position), ("by hand", None, None, None));
    assert!(jiff::Timestamp::now().duration_since(fidget.created_at).abs() < SignedDuration::from_mins(5));
}

fn an_update_changes_what_it_names_and_nothing_else(store: &Store) {
    let space = store.space();
    let fidget = NewFidget::of_type("a").config(json!(1)).position(json!(2));
    let fidget = wait(store.service.fidgets().create_fidget(space.id, fidget)).expect("created");
    let mut expected = fidget.clone();
    let steps: [(FidgetPatch, fn(&mut townsquare::Fidget)); 5] = [
        (FidgetPatch::new().kind("b"), |fidget| "b".clone_into(&mut fidget.kind)),
        (FidgetPatch::new().config(Some(json!({"k": []}))), |fidget| fidget.config = Some(json!({"k": []}))),
        (FidgetPatch::new().position(None), |fidget| fidget.position = None),
        (FidgetPatch::new().config(None).position(Some(json!("p"))), |fidget| {
            (fidget.config, fidget.position) = (None, Some(json!("p")));
        }),
        (FidgetPatch::new().config(Some(Value::Null)), |fidget| fidget.config = Some(Value::Null)),
    ];
    for (patch, change) in steps {
        store.hands.advance(Duration::from_millis(1));
        change(&mut expected);
        expected.updated_at += Duration::from_millis(1);
        assert_eq!(wait(store.service.fidgets().update_fidget(fidget.id, patch)).expect("updated"), expected);
        assert_eq!(wait(store.service.fidgets().get_fidget(fidget.id)).expect("read"), expected);
    }
    let mut patch = FidgetPatch::new();
    patch.kind = Change::Clear;
    let refused = wait(store.service.fidgets().update_fidget(fidget.id, patch));
    let sentence = "Update fidget failed: Required field is missing";
    assert_fails(refused, ErrorKind::FieldMissing, Some("23502"), sentence);
}

fn an_empty_update_changes_nothing_and_returns_the_row(store: &Store) {
    let fidget = store.fidget(store.space().id, "clock");
    store.hands.advance(Duration::from_secs(9));
    let same = wait(store.service.fidgets().update_fidget(fidget.id, FidgetPatch::new())).expect("the row");
    assert_eq!(same, fidget);
    let missing = wait(store.service.fidgets().update_fidget(Uuid::new_v4(), FidgetPatch::new()));
    assert_fails(missing, ErrorKind::NotFound, None, "Update fidget failed: Record not found");
}

fn updated_at_moves_with_every_update_and_never_back(store: &Store) {
    let fidget = store.fidget(store.space().id, "clock");
    let mut last = fidget.updated_at;
    for step in [0, -3_600, 0, 7_200, -86_400] {
        store.hands.step(SignedDuration::from_secs(step));
        let patch = FidgetPatch::new().kind("clock");
        let updated = wait(store.service.fidgets().update_fidget(fidget.id, patch)).expect("updated");
        let positions = BTreeMap::from([(fidget.id, Some(json!(1)))]);
        let moved = wait(store.service.fidgets().save_positions(fidget.space_id.expect("in a space"), positions));
        let moved = moved.expect("moved").remove(0);
        assert!(last < updated.updated_at && updated.updated_at < moved.updated_at);
        last = moved.updated_at;
    }
}

fn a_fidget_needs_a_type_and_a_space_that_exists(store: &Store) {
    let space = store.space();
    let bare = wait(store.service.fidgets().create_fidget(space.id, NewFidget::default()));
    let sentence = "Create fidget failed: Required field is missing";
    assert_fails(bare, ErrorKind::FieldMissing, Some("23502"), sentence);
    let lost = wait(store.service.fidgets().create_fidget(Uuid::new_v4(), NewFidget::of_type("clock")));
    let sentence = "Create fidget failed: Referenced record not found";
    assert_fails(lost, ErrorKind::ReferenceMissing, Some("23503"), sentence);
    assert_eq!(store.outside.count("fidgets"), 0);
}

fn a_deleted_fidget_is_gone(store: &Store) {
    let space = store.space();
    let (fidget, kept) = (store.fidget(space.id, "a"), store.fidget(space.id, "b"));
    wait(store.service.fidgets().delete_fidget(fidget.id)).expect("deleted");
    assert_eq!(wait(store.service.fidgets().get_space_fidgets(space.id)).expect("a list"), [kept]);
    let again = wait(store.service.fidgets().delete_fidget(fidget.id));
    assert_fails(again, ErrorKind::NotFound, None, "Delete fidget failed: Record not found");
    let gone = wait(store.service.fidgets().get_fidget(fidget.id));
    assert_fails(gone, ErrorKind::NotFound, None, "Get fidget failed: Record not found");
}

fn fidgets_of_a_space_are_oldest_first(store: &Store) {
    let (space, other) = (store.space(), store.space());
    let mut made = Vec::new();
    for index in 0..9 {
        made.push(store.fidget(space.id, &format!("{index}")));
        store.fidget(other.id, "other");
        if index % 3 == 2 {
            store.hands.step(SignedDuration::from_micros(-1));
        }
    }
    made.sort_by_key(|fidget| (fidget.created_at, fidget.id));
    assert_eq!(wait(store.service.fidgets().get_space_fidgets(space.id)).expect("a list"), made);
    assert_eq!(wait(store.service.fidgets().get_space_fidgets(Uuid::new_v4())).expect("no such space"), []);
}

fn positions_are_saved_together(store: &Store) {
    let space = store.space();
    let made: Vec<_> = (0..20)
        .map(|index| {
            store.hands.advance(Duration::from_micros(1));
            store.fidget(space.id, &format!("{index}"))
        })
        .collect();
    store.hands.advance(Duration::from_secs(1));
    let positions = made[..10].iter().enumerate().map(|(x, fidget)| (fidget.id, (x > 0).then(|| json!({ "x": x }))));
    let moved = wait(store.service.fidgets().save_positions(space.id, positions.collect())).expect("moved");
    let now = moved[0].updated_at;
    for (x, (before, after)) in made.iter().zip(&moved).enumerate() {
        let mut expected = before.clone();
        expected.position = (x > 0).then(|| json!({ "x": x }));
        expected.updated_at = now;
        assert_eq!(after, &expected, "oldest first");
    }
    assert_eq!(moved.len(), 10);
    let all = wait(store.service.fidgets().get_space_fidgets(space.id)).expect("a list");
    assert_eq!((&all[..10], &all[10..]), (&moved[..], &made[10..]));
    let none = wait(store.service.fidgets().save_positions(space.id, BTreeMap::new())).expect("nothing to do");
    assert_eq!(none, []);
}

fn positions_of_a_strange_fidget_change_nothing(store: &Store) {
    let (space, other) = (store.space(), store.space());
    let own: Vec<_> = (0..5).map(|_| store.fidget(space.id, "own")).collect();
    let strange = store.fidget(other.id, "strange");
    let before = wait(store.service.fidgets().get_space_fidgets(space.id)).expect("a list");
    for bad in [strange.id, Uuid::nil(), Uuid::max()] {
        let mut positions: BTreeMap<_, _> = own.iter().map(|fidget| (fidget.id, Some(json!(1)))).collect();
        positions.insert(bad, Some(json!(2)));
        let refused = wait(store.service.fidgets().save_positions(space.id, positions));
        assert_fails(refused, ErrorKind::NotFound, None, "Save positions failed: Record not found");
    }
    assert_eq!(wait(store.service.fidgets().get_space_fidgets(space.id)).expect("a list"), before);
    assert_eq!(wait(store.service.fidgets().get_fidget(strange.id)).expect("read"), strange);
}

fn fidgets_in_bulk_are_all_or_none(store: &Store) {
    let space = store.space();
    let good = |kind: &str| NewFidget::of_type(kind).config(json!({"of": kind}));
    for at in [0, 1, 2] {
        let mut fidgets = vec![good("a"), good("b")];
        fidgets.insert(at, NewFidget::default());
        let refused = wait(store.service.fidgets().create_fidgets(space.id, fidgets));
        let sentence = "Create fidgets failed: Required field is missing";
        assert_fails(refused, ErrorKind::FieldMissing, Some("23502"), sentence);
    }
    let lost = wait(store.service.fidgets().create_fidgets(Uuid::new_v4(), vec![good("a")]));
    let sentence = "Create fidgets failed: Referenced record not found";
    assert_fails(lost, ErrorKind::ReferenceMissing, Some("23503"), sentence);
    assert_eq!(store.outside.count("fidgets"), 0);
    let made = wait(store.service.fidgets().create_fidgets(space.id, vec![good("a"), good("b"), good("a")]));
    let made = made.expect("created");
    assert_eq!(made.iter().map(|fidget| fidget.kind.as_str()).collect::<Vec<_>>(), ["a", "b", "a"]);
    let mut sorted = made;
    sorted.sort_by_key(|fidget| (fidget.created_at, fidget.id));
    assert_eq!(wait(store.service.fidgets().get_space_fidgets(space.id)).expect("a list"), sorted);
}
