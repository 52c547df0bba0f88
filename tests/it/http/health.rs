//! `/health` of the router: 200 while the database answers.

use serde_json::json;
use townsquare::{
    communities::{NewRegistration, SpaceType},
    http::{HEALTH_PATH, router},
    spaces::NewSpace,
};
use townsquare_tests::{http_client, http_server::Server, on_both_engines};

on_both_engines! {
    fn a_client_is_healthy_until_it_is_closed(db: &TestDatabase) {
        let client = townsquare::blocking::Client::open(db.config()).expect("opens");
        let server = Server::of(router(client.inner().clone()));
        let ask = |method| http_client::request(server.address(), method, HEALTH_PATH.as_bytes(), b"");
        let healthy = ask("GET");
        assert_eq!((healthy.status, healthy.json()), (200, json!({ "status": "ok" })));
        assert_eq!(healthy.header("cache-control"), Some("no-store"));
        let head = ask("HEAD");
        assert_eq!((head.status, head.body.len()), (200, 0));
        let post = ask("POST");
        assert_eq!((post.status, post.header("allow")), (405, Some("GET, HEAD")));
        client.close();
        let closed = ask("GET");
        assert_eq!((closed.status, closed.json()), (503, json!({ "status": "unavailable" })));
        assert_eq!(ask("HEAD").status, 503);
    }

    fn no_space_of_a_user_makes_a_client_look_unhealthy(db: &TestDatabase) {
        let server = Server::of(router(db.client.inner().clone()));
        let (id, owner) = (townsquare::Uuid::nil(), db.user());
        db.service.spaces().create_space(NewSpace::named("nil").with_id(id).owned_by(owner).public()).expect("a space");
        db.service.communities().register_space(NewRegistration::new(id, "nil", SpaceType::Profile)).expect("registered");
        assert_eq!(http_client::request(server.address(), "GET", HEALTH_PATH.as_bytes(), b"").status, 200);
    }

    fn a_client_whose_database_fails_is_not_healthy(db: &TestDatabase) {
        let server = Server::of(router(db.client.inner().clone()));
        let ask = || http_client::request(server.address(), "GET", HEALTH_PATH.as_bytes(), b"").status;
        assert_eq!(ask(), 200);
        db.raw.run("ALTER TABLE \"spaceRegistrations\" RENAME TO away");
        assert_eq!(ask(), 503);
        db.raw.run("ALTER TABLE away RENAME TO \"spaceRegistrations\"");
    }
}
