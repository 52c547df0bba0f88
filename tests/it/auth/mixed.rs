//! Callers that take turns on the same connections: each finds what is its own, whoever was served before.

use std::thread;

use townsquare::{Client, ErrorKind, NewSpace, Space, blocking::wait};
use townsquare_tests::{on_both_engines, store::Store, town::refused};

use super::people::sign_up;

on_both_engines!(
    a_connection_forgets_whom_it_served,
    callers_in_32_threads_find_their_own,
    a_list_fails_whole_and_the_next_caller_finds_nothing_of_it,
);

/// A user's handle, and a private space.
fn resident(store: &Store, name: &str) -> (Client, Space) {
    let (_, client) = sign_up(store, &format!("{name}@town.example"));
    let space = wait(client.spaces().create_space(NewSpace::named(name))).expect("a space");
    (client, space)
}

fn finds_own(client: &Client, own: &Space, others: &[&Space]) {
    assert_eq!(wait(client.spaces().get_space(own.id)).expect("one's own"), *own);
    for other in others {
        refused(ErrorKind::NotFound, wait(client.spaces().get_space(other.id)));
        let list = wait(client.spaces().get_user_spaces(other.owner_id.expect("owned"))).expect("a list");
        assert!(list.is_empty());
    }
}

fn a_connection_forgets_whom_it_served(store: &Store) {
    let ((ann, of_ann), (bob, of_bob)) = (resident(store, "ann"), resident(store, "bob"));
    for _ in 0..3 {
        finds_own(&ann, &of_ann, &[&of_bob]);
        refused(ErrorKind::NotFound, wait(store.client.spaces().get_space(of_ann.id)));
        assert_eq!(wait(store.service.spaces().get_space(of_ann.id)).expect("the service"), of_ann);
        refused(ErrorKind::NotFound, wait(store.client.spaces().get_space(of_ann.id)));
        assert_eq!(wait(store.service.spaces().get_space(of_bob.id)).expect("the service"), of_bob);
        finds_own(&bob, &of_bob, &[&of_ann]);
        let refusal = wait(store.client.spaces().create_space(NewSpace::named("x")));
        refused(ErrorKind::Forbidden, refusal);
    }
}

fn callers_in_32_threads_find_their_own(store: &Store) {
    let residents: Vec<_> = (0..4).map(|number| resident(store, &format!("resident-{number}"))).collect();
    let spaces: Vec<&Space> = residents.iter().map(|(_, space)| space).collect();
    thread::scope(|scope| {
        for number in 0..32 {
            let (residents, spaces) = (&residents, &spaces);
            scope.spawn(move || {
                for round in 0..25 {
                    // Whom a thread asks for changes with every call.
                    match (number + round) % 6 {
                        4 => spaces.iter().for_each(|space| {
                            refused(ErrorKind::NotFound, wait(store.client.spaces().get_space(space.id)));
                        }),
                        5 => spaces.iter().for_each(|space| {
                            let seen = wait(store.service.spaces().get_space(space.id)).expect("the service");
                            assert_eq!(seen, **space);
                        }),
                        place => {
                            let (client, own) = &residents[place];
                            let others: Vec<_> = spaces.iter().copied().filter(|space| space.id != own.id).collect();
                            finds_own(client, own, &others);
                            let made = wait(client.spaces().create_spaces(vec![NewSpace::named("x"); 2]));
                            for made in made.expect("one's own") {
                                assert_eq!(made.owner_id, own.owner_id);
                                wait(client.spaces().delete_space(made.id)).expect("one's own");
                            }
                        }
                    }
                }
            });
        }
    });
    assert_eq!(store.outside.count("spaces"), 4);
}

fn a_list_fails_whole_and_the_next_caller_finds_nothing_of_it(store: &Store) {
    let ((ann, of_ann), (bob, of_bob)) = (resident(store, "ann"), resident(store, "bob"));
    let list = vec![NewSpace::named("x").public(), NewSpace::named("gift").owned_by(of_bob.owner_id.expect("owned"))];
    refused(ErrorKind::Forbidden, wait(ann.spaces().create_spaces(list)));
    assert_eq!(wait(store.client.spaces().get_public_spaces(100, 0)).expect("a list"), []);
    finds_own(&bob, &of_bob, &[&of_ann]);
    finds_own(&ann, &of_ann, &[&of_bob]);
}
