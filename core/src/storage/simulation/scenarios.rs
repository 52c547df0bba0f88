//! The schedules of defects that seeds have found, as tests of their own.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, TryStreamExt};
use jiff::Timestamp;
use object_store::{ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;
use uuid::Uuid;

use super::{
    Template, USER, calls,
    client::{Client, Opened, Setup},
    folder,
    history::By,
    request::Request,
    scheduler,
    store::fault,
    template,
    world::{Step, World},
};
use crate::{
    clock::ManualClock,
    database::{FilePlace, Statement},
    model::UploadOptions,
    objects::ObjectKey,
    storage::{FileQuota, core::OPEN_TIMEOUT, transfer::SourceBytes},
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

/// Runs a call to its end. Time passes when it waits for nothing else.
fn run<T: Send + 'static>(client: &Client, call: impl Future<Output = T> + Send + 'static) -> T {
    let result = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&result);
    client.spawn(async move {
        let found = call.await;
        *slot.lock() = Some(found);
    });
    client.drive();
    loop {
        if let Some(found) = result.lock().take() {
            return found;
        }
        if is_anything_waiting() { proceed(client) } else { client.advance(Duration::from_secs(1)) }
    }
}

/// Runs a call, which gets no answer to its first copy. Returns the copy. `carry_out` is called before the call gives it up.
fn run_without_answer(
    client: &Client,
    call: impl Future<Output = ()> + Send + 'static,
    carry_out: impl FnOnce(&Request),
) -> Request {
    let task = client.spawn(call);
    client.drive();
    loop {
        let first = World::with(|world| match &world.waiting[0].step {
            Step::Store { request: Request::Copy(..), .. } => Some(world.waiting.remove(0).step),
            _ => None,
        });
        if let Some(Step::Store { request, answer, .. }) = first {
            carry_out(&request);
            let _ = answer.send(Err(fault("no answer")));
            client.drive();
            while is_anything_waiting() {
                proceed(client);
            }
            assert!(task.is_finished());
            client.run_instantly(task).expect("no panic");
            return request;
        }
        proceed(client);
    }
}

/// The objects below a path of the store.
fn objects_in(path: &str) -> Vec<String> {
    let objects = World::with(|world| Arc::clone(&world.objects));
    let listed = objects.list(Some(&path.into())).try_collect::<Vec<_>>().now_or_never().expect("at once");
    listed.expect("a list").into_iter().map(|object| object.location.to_string()).collect()
}

fn land(late: &Request) -> object_store::Result<()> {
    World::with(|world| late.apply(&world.objects)).map(drop)
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
                let taken = core.take_locked_store(&recorded, None).await;
                outcomes.lock().push(matches!(taken, Ok(Some(_))));
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

/// What ends the new uploads of the user `$1`, and the bucket and the path of such an upload.
static ENDS: [(&str, &str, &Statement); 4] = [
    ("assets", "a.txt", &calls::REVOKE),
    ("spaces", "00000000-0000-0000-0000-000000000003/a.txt", &DELETE_SPACE),
    ("spaces", "00000000-0000-0000-0000-000000000003/a.txt", &GIVE_SPACE),
    ("private", "00000000-0000-0000-0000-000000000001/a.txt", &DELETE_USER),
];

static DELETE_SPACE: Statement = Statement::new("DELETE FROM spaces WHERE owner_id = $1 RETURNING 1");
static GIVE_SPACE: Statement = Statement::new("UPDATE spaces SET owner_id = NULL WHERE owner_id = $1 RETURNING 1");
static DELETE_USER: Statement = Statement::new("DELETE FROM users WHERE id = $1 RETURNING 1");

/// The store may carry out the copy of an upload that was ended when another file has its path.
#[test]
fn a_late_copy_of_an_ended_upload_leaves_no_object_and_replaces_no_file() {
    for (bucket, path, end) in ENDS {
        for has_next in [false, true] {
            with_client(|client, opened, _| {
                let (user, service) = (opened.storage(By::User).clone(), opened.storage(By::Service).clone());
                let core = Arc::clone(&opened.core);
                let execute = |statement| {
                    let core = Arc::clone(&core);
                    let done = async move { core.service.execute(statement, vec![USER.into()], |_| Ok(())).await };
                    assert!(run(client, done).expect("no error").is_some());
                };
                let upload = async move {
                    let uploaded = user.upload(bucket, path, vec![b'x'; 100], UploadOptions::new()).await;
                    assert_eq!(uploaded.expect_err("no answer").code(), Some("08007"));
                };
                let late = run_without_answer(client, upload, |_| {});
                execute(end);
                let next = has_next.then(|| {
                    let service = service.clone();
                    run(
                        client,
                        async move { service.upload(bucket, path, vec![b'y'; 100], UploadOptions::new()).await },
                    )
                });
                let sweep = async move { core.recover_pending(OPEN_TIMEOUT, None).await };
                run(client, sweep).expect("swept");
                let _ = land(&late);
                // A deleted space has no new files.
                let has_file = next.is_some_and(|uploaded| uploaded.is_ok());
                assert_eq!(objects_in(bucket).len(), usize::from(has_file), "{path}");
                if has_file {
                    let read = run(client, async move { service.download(bucket, path).await });
                    assert_eq!(read.expect("the file"), vec![b'y'; 100], "{path}");
                }
            });
        }
    }
}

#[test]
fn a_held_copy_whose_answer_is_lost_is_removed() {
    with_client(|client, opened, _| {
        let (core, service) = (opened.core.clone(), opened.storage(By::Service).clone());
        let upload = async move { service.upload("assets", "a.txt", vec![b'x'; 100], UploadOptions::new()).await };
        run(client, upload).expect("a file");
        let hold = async move {
            let hold = core.objects.begin_hold().await.expect("a hold");
            let key = ObjectKey { bucket: "assets".to_owned(), path: "a.txt".to_owned() };
            hold.add(&key, "name", 100).await.expect_err("no answer");
        };
        run_without_answer(client, hold, |copy| land(copy).expect("it is held"));
        assert_eq!(objects_in(".townsquare/held"), [""; 0]);
    });
}

#[test]
fn a_copied_file_whose_install_fails_leaves_no_stage() {
    with_client(|client, opened, _| {
        let core = opened.core.clone();
        let copy = async move {
            let content = vec![b'x'; 100];
            let file = FilePlace {
                bucket: "assets".to_owned(),
                path: "a.txt".to_owned(),
                size: 100,
                content_type: "text/plain".to_owned(),
                cache_control: 60,
                etag: "one".to_owned(),
                metadata: serde_json::json!({}),
                digest: blake3::hash(&content).to_hex().to_string(),
                is_inline: false,
            };
            core.copy_bytes(SourceBytes::Inline(content.into()), &file).await.expect_err("no answer");
        };
        let late = run_without_answer(client, copy, |_| {});
        assert_eq!(objects_in(".townsquare/staging"), [""; 0]);
        land(&late).expect_err("it finds no stage");
        assert_eq!(objects_in("assets"), [""; 0]);
    });
}
