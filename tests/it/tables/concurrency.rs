//! Many callers of one client at once: a write that fails fails alone, and nothing is lost or done twice.

use std::{collections::BTreeMap, future::poll_fn, task::Poll, thread};

use serde_json::json;
use townsquare::{DomainType, ErrorKind, NewFidget, NewRegistration, NewSpace, SpaceType, Uuid, blocking::wait};
use townsquare_tests::{
    on_both_engines,
    store::{Store, required},
};

on_both_engines!(
    a_write_that_fails_fails_alone,
    a_new_community_is_made_once_by_many,
    a_domain_goes_to_one_of_many,
    drags_at_once_do_not_deadlock,
    a_write_whose_caller_went_away_is_whole_or_not_there,
);

/// Runs `work` on so many threads at once, each with its number.
fn at_once<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
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

fn a_write_that_fails_fails_alone(store: &Store) {
    let space = store.space();
    at_once(16, |number| {
        for round in 0..10 {
            let name = format!("{number}/{round}");
            let (good, lost) = (NewSpace::named(&name), NewSpace::named(&name).owned_by(Uuid::from_u128(9)));
            match (number + round) % 4 {
                0 => {
                    let error = wait(store.service.spaces().create_space(lost)).expect_err("nobody's");
                    assert_eq!(error.kind(), ErrorKind::ReferenceMissing);
                }
                1 => {
                    let error = wait(store.service.spaces().create_spaces(vec![good, lost])).expect_err("one is lost");
                    assert_eq!(error.kind(), ErrorKind::ReferenceMissing);
                }
                2 => {
                    let many = vec![NewFidget::of_type(&name), NewFidget::default()];
                    let error = wait(store.service.fidgets().create_fidgets(space.id, many)).expect_err("one is bare");
                    assert_eq!(error.kind(), ErrorKind::FieldMissing);
                }
                _ => drop(wait(store.service.spaces().create_space(good)).expect("created")),
            }
        }
    });
    assert_eq!(store.outside.count("spaces"), 1 + 40);
    assert_eq!(store.outside.count("fidgets"), 0);
}

fn a_new_community_is_made_once_by_many(store: &Store) {
    for round in 0..5 {
        let id = format!("town-{round}");
        let rows = at_once(8, |_| {
            wait(store.service.communities().save_community_config(&id, required())).expect("made or updated")
        });
        assert!(rows.iter().all(|row| row.id == rows[0].id), "one row");
        let mut times: Vec<_> = rows.iter().map(|row| row.updated_at).collect();
        times.sort_unstable();
        times.dedup();
        assert_eq!(times.len(), 8, "each save moved the time");
    }
    assert_eq!(store.outside.count("community_configs"), 5);
}

fn a_domain_goes_to_one_of_many(store: &Store) {
    for number in 0..8 {
        store.community(&format!("town-{number}"));
    }
    let taken = at_once(8, |number| {
        let id = format!("town-{number}");
        wait(store.service.communities().save_community_domain(&id, "one.example", DomainType::Custom)).map(drop)
    });
    let id = Uuid::new_v4();
    let registered = at_once(8, |_| {
        wait(store.service.communities().register_space(NewRegistration::new(id, "x", SpaceType::Token))).map(drop)
    });
    for results in [taken, registered] {
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
        assert!(results.iter().filter_map(|result| result.as_ref().err()).all(|error| error.code() == Some("23505")));
    }
}

fn drags_at_once_do_not_deadlock(store: &Store) {
    let space = store.space();
    let fidgets: Vec<_> = (0..10).map(|_| store.fidget(space.id, "x").id).collect();
    at_once(8, |number| {
        for round in 0..10 {
            let positions: BTreeMap<_, _> = fidgets.iter().map(|id| (*id, Some(json!([number, round])))).collect();
            wait(store.service.fidgets().save_positions(space.id, positions)).expect("moved");
        }
    });
    let moved = wait(store.service.fidgets().get_space_fidgets(space.id)).expect("a list");
    assert!(moved.iter().all(|fidget| fidget.position == moved[0].position), "one drag was the last, with all of it");
}

fn a_write_whose_caller_went_away_is_whole_or_not_there(store: &Store) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (mut given_up, mut failures) = (0, Vec::new());
    runtime.block_on(async {
        for round in 0..1_000 {
            if given_up >= 40 {
                break;
            }
            let trio = (0..3).map(|_| NewSpace::named(format!("{round}"))).collect();
            let mut write = Box::pin(store.service.spaces().create_spaces(trio));
            // Looked at once or a few times, with a breath between, and then no more.
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
    let after = wait(store.service.spaces().create_space(NewSpace::named("after"))).expect("the client goes on");
    wait(store.service.spaces().delete_space(after.id)).expect("deleted");
    for row in store.outside.rows("SELECT count(*) FROM spaces GROUP BY name") {
        assert_eq!(row, [Some("3".to_owned())], "a write is whole");
    }
}
