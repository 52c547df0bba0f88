//! Concurrent callers of one client: a failing write fails alone, and no write is lost or repeated.

use std::{collections::BTreeMap, future::poll_fn, task::Poll, thread};

use serde_json::json;
use townsquare::{
    ErrorKind, Uuid,
    communities::{DomainType, NewRegistration, SpaceType},
    spaces::{NewFidget, NewSpace},
};
use townsquare_tests::{on_both_engines, test_database::required};

/// Runs `work` on concurrent threads with their numbers.
fn concurrently<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|number| {
                scope.spawn({
                    let work = &work;
                    move || work(number)
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().expect("no panic")).collect()
    })
}

on_both_engines! {
    fn a_failing_write_fails_no_other_write_of_its_group(db: &TestDatabase) {
        let space = db.space();
        concurrently(16, |number| {
            for round in 0..10 {
                let name = format!("{number}/{round}");
                let (good, lost) = (NewSpace::named(&name), NewSpace::named(&name).owned_by(Uuid::from_u128(9)));
                match (number + round) % 4 {
                    0 => {
                        let error = db.service.spaces().create_space(lost).expect_err("the owner is missing");
                        assert_eq!(error.kind(), ErrorKind::ReferenceMissing);
                    }
                    1 => {
                        let created = db.service.spaces().create_spaces(vec![good, lost]);
                        let error = created.expect_err("one owner is missing");
                        assert_eq!(error.kind(), ErrorKind::ReferenceMissing);
                    }
                    2 => {
                        let many = vec![NewFidget::of_type(&name), NewFidget::default()];
                        let created = db.service.fidgets().create_fidgets(space.id, many);
                        let error = created.expect_err("one type is missing");
                        assert_eq!(error.kind(), ErrorKind::FieldMissing);
                    }
                    _ => drop(db.service.spaces().create_space(good).expect("created")),
                }
            }
        });
        assert_eq!(db.raw.count("spaces"), 1 + 40);
        assert_eq!(db.raw.count("fidgets"), 0);
    }

    fn concurrent_saves_create_a_community_once(db: &TestDatabase) {
        for round in 0..5 {
            let id = format!("town-{round}");
            let rows = concurrently(8, |_| {
                db.service.communities().save_community_config(&id, required()).expect("made or updated")
            });
            assert!(rows.iter().all(|row| row.id == rows[0].id), "one row");
            let mut times: Vec<_> = rows.iter().map(|row| row.updated_at).collect();
            times.sort_unstable();
            times.dedup();
            assert_eq!(times.len(), 8, "each save moved the time");
        }
        assert_eq!(db.raw.count("community_configs"), 5);
    }

    fn concurrent_saves_assign_a_domain_once(db: &TestDatabase) {
        for number in 0..8 {
            db.community(&format!("town-{number}"));
        }
        let taken = concurrently(8, |number| {
            let id = format!("town-{number}");
            db.service.communities().save_community_domain(&id, "one.example", DomainType::Custom).map(drop)
        });
        let id = Uuid::new_v4();
        let registered = concurrently(8, |_| {
            db.service.communities().register_space(NewRegistration::new(id, "x", SpaceType::Token)).map(drop)
        });
        for results in [taken, registered] {
            assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
            assert!(
                results.iter().filter_map(|result| result.as_ref().err()).all(|error| error.code() == Some("23505"))
            );
        }
    }

    fn concurrent_save_positions_do_not_deadlock(db: &TestDatabase) {
        let space = db.space();
        let fidgets: Vec<_> = (0..10).map(|_| db.fidget(space.id, "x").id).collect();
        concurrently(8, |number| {
            for round in 0..10 {
                let positions: BTreeMap<_, _> = fidgets.iter().map(|id| (*id, Some(json!([number, round])))).collect();
                db.service.fidgets().save_positions(space.id, positions).expect("moved");
            }
        });
        let moved = db.service.fidgets().get_space_fidgets(space.id).expect("a list");
        assert!(
            moved.iter().all(|fidget| fidget.position == moved[0].position),
            "the last save set every position"
        );
    }

    fn a_write_with_a_dropped_future_is_complete_or_absent(db: &TestDatabase) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (mut given_up, mut failures) = (0, Vec::new());
        runtime.block_on(async {
            for round in 0..1_000 {
                if given_up >= 40 {
                    break;
                }
                let trio = (0..3).map(|_| NewSpace::named(format!("{round}"))).collect();
                let mut write = Box::pin(db.async_service().spaces().create_spaces(trio));
                // Polls the future a few times and drops it.
                let mut is_given_up = true;
                for _ in 0..=round % 4 {
                    match poll_fn(|context| Poll::Ready(write.as_mut().poll(context))).await {
                        Poll::Pending => tokio::task::yield_now().await,
                        Poll::Ready(written) => {
                            is_given_up = false;
                            failures.extend(written.err());
                            break;
                        }
                    }
                }
                given_up += usize::from(is_given_up);
            }
        });
        assert!(given_up >= 40, "few were given up: {given_up}; {failures:?}");
        let after = db.service.spaces().create_space(NewSpace::named("after")).expect("the client goes on");
        db.service.spaces().delete_space(after.id).expect("deleted");
        for row in db.raw.rows("SELECT count(*) FROM spaces GROUP BY name") {
            assert_eq!(row, [Some("3".to_owned())], "all three spaces of a write exist");
        }
    }
}
