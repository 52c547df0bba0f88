//! What a deleted space or user leaves (DESIGN 7), also by plain SQL: nothing of a space, no private file of a user, and
//! public files without owner.

use townsquare::{blocking::wait, spaces::NewSpace};

use super::town::{bytes, on_every_store, paths, put};

on_every_store! {
    fn a_deleted_space_takes_its_files_along(town: &Town) {
        let ann = town.citizen("ann");
        let [first, second] = ["Plaza", "Harbor"].map(|name| {
            wait(ann.client.spaces().create_space(NewSpace::named(name))).expect("a space").id
        });
        for id in [first, second] {
            put(&ann.client, "spaces", &format!("{id}/tabOrder"), "[]").expect("uploaded");
            put(&ann.client, "spaces", &format!("{id}/tabs/Home"), bytes(100_000, 1)).expect("uploaded");
        }
        wait(ann.client.spaces().delete_space(first)).expect("deleted");
        let rest = [format!("{second}/tabOrder"), format!("{second}/tabs/Home")];
        assert_eq!(paths(&town.db.service, "spaces"), rest);
        wait(town.db.service.storage().repair()).expect("repaired");
        let objects: Vec<_> = town.objects().unwrap_or_default();
        assert!(!objects.iter().any(|object| object.contains(&first.to_string())), "{objects:?}");
        town.db.raw.run(&format!("DELETE FROM spaces WHERE id = '{second}'"));
        assert!(paths(&town.db.service, "spaces").is_empty(), "also by plain SQL");
        wait(town.db.service.storage().repair()).expect("repaired");
        assert_eq!(town.objects(), town.expected_objects(&[], 0));
        let left = super::files::own(town, "SELECT count(*) FROM townsquare.file_outbox");
        assert_eq!(town.db.raw.value(&left), "0");
    }

    fn a_deleted_user_leaves_public_files_without_owner_and_no_private_ones(town: &Town) {
        const SEED: &str = "0101010101010101010101010101010101010101010101010101010101010101";
        let (ann, bob) = (town.citizen("ann"), town.citizen("bob"));
        let audience = wait(ann.client.auth().identity_audience()).expect("the audience");
        let now = townsquare_tests::fixture::start_time();
        let claim = townsquare::auth::identity_claim(ann.id, SEED, &audience, now).expect("a claim");
        wait(ann.client.auth().link_identity(&claim)).expect("linked");
        let key = claim["publicKey"].as_str().expect("a key");
        let space = wait(ann.client.spaces().create_space(NewSpace::named("Plaza"))).expect("a space").id;
        for size in [10, 100_000] {
            for (bucket, path) in [
                ("private", format!("{}/{size}", ann.id)),
                ("private", format!("{key}/{size}")),
                ("spaces", format!("{space}/{size}")),
                ("assets", format!("images/{size}")),
            ] {
                put(&ann.client, bucket, &path, bytes(size, 1)).expect("uploaded");
            }
            put(&bob.client, "private", &format!("{}/{size}", bob.id), bytes(size, 2)).expect("uploaded");
        }
        wait(town.db.service.auth().delete_user(ann.id)).expect("deleted");
        assert_eq!(paths(&town.db.service, "private"), [format!("{}/10", bob.id), format!("{}/100000", bob.id)]);
        assert!(paths(&town.db.service, "spaces").is_empty(), "the space went by cascade");
        for size in [10, 100_000] {
            let info = wait(town.db.service.storage().stat("assets", &format!("images/{size}"))).expect("it stays");
            assert_eq!(info.owner_id, None);
            assert!(town.get("assets", &format!("images/{size}")) == bytes(size, 1));
        }
        wait(town.db.service.storage().repair()).expect("repaired");
        let objects = town.objects().unwrap_or_default();
        let of_ann = |object: &&String| object.contains(&ann.id.to_string()) || object.contains(key) || object.starts_with("spaces/");
        assert_eq!(objects.iter().find(of_ann), None, "{objects:?}");
    }
}
