//! The schedules of defects that seeds have found, as tests of their own.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use object_store::ObjectStoreExt;
use parking_lot::Mutex;
use uuid::Uuid;

use super::{
    Template,
    client::{Client, Opened, Setup},
    folder, scheduler, template,
    world::{Step, World},
};
use crate::{
    clock::ManualClock,
    storage::FileQuota,
    threads::{blocking_caller, turn},
};

const LEASE: Duration = Duration::from_secs(15);

/// Opens a client, and calls `check` with it.
fn with_client(check: impl FnOnce(&Client, Opened, &ManualClock)) {
    let folder = folder();
    let Template { file, user } = template(folder.path());
    let _inline_writes = blocking_caller::enter();
    World::begin(0);
    turn::set_hook(Some(Box::new(scheduler::begin_turn)));
    let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
    let mut client = Client::new(0);
    client.open(&Setup { file, clock: clock.clone(), quota: FileQuota::default(), user });
    while client.opened().is_none() {
        proceed(&client);
    }
    let opened = client.opened().expect("it is open").expect("no error");
    check(&client, opened, &clock);
    client.crash();
    scheduler::end();
}

/// Lets the step that waits longest proceed.
fn proceed(client: &Client) {
    let waiting = World::with(|world| world.waiting.remove(0));
    match waiting.step {
        Step::Database { answer, .. } => drop(answer.send(Ok(()))),
        Step::Store { request, answer, .. } => {
            drop(answer.send(World::with(|world| request.apply(&world.objects))));
        }
    }
    client.drive();
}

fn is_anything_waiting() -> bool {
    World::with(|world| !world.waiting.is_empty())
}

#[test]
fn a_lease_that_ends_while_it_is_taken_is_not_held() {
    with_client(|client, opened, clock| {
        let take = |pause: Duration| {
            let (held, service) = (Arc::new(Mutex::new(None)), opened.core.service.clone());
            let slot = Arc::clone(&held);
            let task = client.spawn(async move {
                let lease = service.take_lease("test", Uuid::from_u128(1), LEASE).await.expect("no error");
                *slot.lock() = Some(lease.is_some());
            });
            client.drive();
            clock.advance(pause);
            client.advance(pause);
            while !task.is_finished() {
                proceed(client);
            }
            held.lock().take()
        };
        assert_eq!(take(LEASE), Some(false));
        assert_eq!(take(Duration::ZERO), Some(true));
    });
}

#[test]
fn two_writers_without_a_lock_give_a_store_one_id() {
    with_client(|client, opened, _| {
        let outcomes = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::new(client.run_instantly(opened.core.recorded_store()).expect("a record"));
        for _ in 0..2 {
            let (core, recorded, outcomes) = (opened.core.clone(), Arc::clone(&recorded), Arc::clone(&outcomes));
            client.spawn(async move {
                let taken = core.take_locked_store(&recorded).await;
                outcomes.lock().push(taken.is_ok());
            });
        }
        client.drive();
        while is_anything_waiting() {
            proceed(client);
        }
        assert_eq!(outcomes.lock().iter().filter(|is_ok| **is_ok).count(), 1, "one of them takes it");
        let recorded = client.run_instantly(opened.core.recorded_store()).expect("a record").id;
        let objects = World::with(|world| Arc::clone(&world.objects));
        let written = client.run_instantly(async {
            let id = objects.get(&".townsquare/store".into()).await.expect("it has an id");
            id.bytes().await.expect("its bytes")
        });
        assert_eq!(String::from_utf8_lossy(&written).trim(), recorded);
    });
}
