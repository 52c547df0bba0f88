//! The feed shows the rows that the select policies allow (DESIGN 4): on random rows, each caller's live queries are compared
//! with what the caller reads.

use std::collections::BTreeSet;

use townsquare::{
    Uuid,
    blocking::Client,
    realtime::LiveRequest,
    spaces::{NewFidget, NewSpace},
};
use townsquare_tests::{Rng, on_both_engines, setting::seed};

const PASSWORD: &str = "correct horse";

/// The ids of the rows of a live query.
fn live(client: &Client, table: &str) -> BTreeSet<String> {
    let rows = client.realtime().live(LiveRequest::table(table)).expect("a live query").rows;
    rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
}

fn readable(ids: &[Uuid], read: impl Fn(Uuid) -> bool) -> BTreeSet<String> {
    ids.iter().filter(|id| read(**id)).map(ToString::to_string).collect()
}

on_both_engines! {
    fn a_live_query_has_the_rows_that_its_caller_reads(db: &TestDatabase) {
        let mut random = Rng::with_seed(seed(3));
        let mut users = Vec::new();
        for number in 0..3 {
            let address = format!("user-{number}@town.example");
            let id = db.service.auth().sign_up(&address, PASSWORD).expect("signed up").id;
            let session = db.service.auth().sign_in(&address, PASSWORD).expect("a session");
            users.push((id, db.client.as_user(&session.access_token).expect("a handle")));
        }
        let (mut spaces, mut fidgets) = (Vec::new(), Vec::new());
        for _ in 0..20 {
            let mut space = NewSpace::named("x");
            if random.u32(..5) > 0 {
                space = space.owned_by(users[random.usize(..users.len())].0);
            }
            if random.bool() {
                space = space.public();
            }
            let id = db.service.spaces().create_space(space).expect("a space").id;
            for _ in 0..random.u32(..3) {
                fidgets.push(db.service.fidgets().create_fidget(id, NewFidget::of_type("x")).expect("a fidget").id);
            }
            spaces.push(id);
        }
        for space in spaces.iter().filter(|_| random.u32(..4) == 0) {
            db.raw.run(&format!("UPDATE spaces SET is_public = NULL WHERE id = '{space}'"));
        }
        db.community("published");
        db.community("hidden");
        db.raw.run("UPDATE community_configs SET is_published = false WHERE community_id = 'hidden'");
        let callers = users.iter().map(|(id, client)| (Some(*id), client));
        for (user, client) in callers.chain([(None, &db.client)]) {
            let of_spaces = readable(&spaces, |id| client.spaces().get_space(id).is_ok());
            assert_eq!(live(client, "spaces"), of_spaces, "{user:?}");
            assert!(!of_spaces.is_empty() && of_spaces.len() < spaces.len());
            let of_fidgets = readable(&fidgets, |id| client.fidgets().get_fidget(id).is_ok());
            assert_eq!(live(client, "fidgets"), of_fidgets, "{user:?}");
            assert_eq!(live(client, "users"), user.iter().map(ToString::to_string).collect(), "{user:?}");
            assert_eq!(live(client, "community_configs").len(), 1, "{user:?}");
        }
        assert_eq!(live(&db.service, "spaces").len(), spaces.len());
        assert_eq!(live(&db.service, "community_configs").len(), 2);
    }
}
