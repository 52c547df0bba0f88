//! Callers that share pooled connections: each sees its own rows, whatever caller used the connection before.

use std::thread;

use townsquare::{
    ErrorKind,
    blocking::Client,
    spaces::{NewSpace, Space},
};
use townsquare_tests::{fixture::assert_kind, on_both_engines, test_database::TestDatabase};

use super::users::sign_up;

/// Signs up a user with a private space; returns the space and the user's handle.
fn user_with_space(db: &TestDatabase, name: &str) -> (Client, Space) {
    let (_, client) = sign_up(db, &format!("{name}@town.example"));
    let space = client.spaces().create_space(NewSpace::named(name)).expect("a space");
    (client, space)
}

fn assert_sees_own(client: &Client, own: &Space, others: &[&Space]) {
    assert_eq!(client.spaces().get_space(own.id).expect("one's own"), *own);
    for other in others {
        assert_kind(ErrorKind::NotFound, client.spaces().get_space(other.id));
        let list = client.spaces().get_user_spaces(other.owner_id.expect("owned")).expect("a list");
        assert!(list.is_empty());
    }
}

on_both_engines! {
    fn a_pooled_connection_forgets_its_last_principal(db: &TestDatabase) {
        let ((ann, of_ann), (bob, of_bob)) = (user_with_space(db, "ann"), user_with_space(db, "bob"));
        for _ in 0..3 {
            assert_sees_own(&ann, &of_ann, &[&of_bob]);
            assert_kind(ErrorKind::NotFound, db.client.spaces().get_space(of_ann.id));
            assert_eq!(db.service.spaces().get_space(of_ann.id).expect("the service"), of_ann);
            assert_kind(ErrorKind::NotFound, db.client.spaces().get_space(of_ann.id));
            assert_eq!(db.service.spaces().get_space(of_bob.id).expect("the service"), of_bob);
            assert_sees_own(&bob, &of_bob, &[&of_ann]);
            let refusal = db.client.spaces().create_space(NewSpace::named("x"));
            assert_kind(ErrorKind::Forbidden, refusal);
        }
    }

    fn callers_on_32_threads_see_their_own_rows(db: &TestDatabase) {
        let users: Vec<_> = (0..4).map(|number| user_with_space(db, &format!("resident-{number}"))).collect();
        let spaces: Vec<&Space> = users.iter().map(|(_, space)| space).collect();
        thread::scope(|scope| {
            for number in 0..32 {
                let (users, spaces) = (&users, &spaces);
                scope.spawn(move || {
                    for round in 0..25 {
                        // Each call uses another caller.
                        match (number + round) % 6 {
                            4 => spaces.iter().for_each(|space| {
                                assert_kind(ErrorKind::NotFound, db.client.spaces().get_space(space.id));
                            }),
                            5 => spaces.iter().for_each(|space| {
                                let seen = db.service.spaces().get_space(space.id).expect("the service");
                                assert_eq!(seen, **space);
                            }),
                            place => {
                                let (client, own) = &users[place];
                                let others: Vec<_> =
                                    spaces.iter().copied().filter(|space| space.id != own.id).collect();
                                assert_sees_own(client, own, &others);
                                let made = client.spaces().create_spaces(vec![NewSpace::named("x"); 2]);
                                for made in made.expect("one's own") {
                                    assert_eq!(made.owner_id, own.owner_id);
                                    client.spaces().delete_space(made.id).expect("one's own");
                                }
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(db.raw.count("spaces"), 4);
    }

    fn a_failed_bulk_insert_leaves_no_rows_for_the_next_caller(db: &TestDatabase) {
        let ((ann, of_ann), (bob, of_bob)) = (user_with_space(db, "ann"), user_with_space(db, "bob"));
        let list =
            vec![NewSpace::named("x").public(), NewSpace::named("gift").owned_by(of_bob.owner_id.expect("owned"))];
        assert_kind(ErrorKind::Forbidden, ann.spaces().create_spaces(list));
        assert_eq!(db.client.spaces().get_public_spaces(100, 0).expect("a list"), []);
        assert_sees_own(&bob, &of_bob, &[&of_ann]);
        assert_sees_own(&ann, &of_ann, &[&of_bob]);
    }
}
