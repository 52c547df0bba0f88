//! A primary and its standby (DESIGN 3): reads on the standby, and the writer after a failover.

use townsquare::{
    Config, ErrorKind, Uuid,
    blocking::Client,
    realtime::ChangeRequest,
    spaces::{NewSpace, SpacePatch},
};
use townsquare_tests::{
    fixture::assert_kind,
    postgres::{APP_ROLE, Server},
    wait::{DEADLINE, wait_until, wait_up_to},
};

fn open(url: &str) -> Client {
    Client::open(Config::new().database_url(url).catalog_api_key("")).expect("opens")
}

#[test]
fn the_writer_is_found_after_a_failover() {
    let Some(primary) = Server::durable() else { return };
    let database = primary.new_database();
    let client = open(&primary.url(APP_ROLE, &database));
    let space = client.as_service().spaces().create_space(NewSpace::named("before")).expect("created");
    client.close();
    let standby = primary.standby();

    let reader = open(&standby.url(APP_ROLE, &database));
    let read = || reader.as_service().spaces().get_space(space.id);
    wait_until("the standby has the row", || read().is_ok());
    let rename = |name: &str| SpacePatch::new().name(name);
    let refused = reader.as_service().spaces().update_space(space.id, rename("refused"));
    let error = assert_kind(ErrorKind::Unavailable, refused);
    assert_eq!((error.code(), error.is_retryable()), (Some("25006"), true), "{error:?}");

    // A standby does not know the transactions that write the log.
    let subscribed = reader.as_service().realtime().subscribe("x", ChangeRequest::table("spaces"), |_| {});
    let error = assert_kind(ErrorKind::Unavailable, subscribed);
    assert_eq!((error.code(), error.is_retryable()), (Some("25006"), true), "{error:?}");
    assert!(error.message().contains("recovery"), "{error}");

    // Without target_session_attrs the primary is preferred, also if the standby is the first.
    let ports = format!("127.0.0.1:{},127.0.0.1:{}", standby.port(), primary.port());
    let client = open(&format!("postgres://{APP_ROLE}@{ports}/{database}"));
    client.as_service().spaces().update_space(space.id, rename("first")).expect("on the primary");
    client.close();

    let ports = format!("127.0.0.1:{},127.0.0.1:{}", primary.port(), standby.port());
    let client = open(&format!("postgres://{APP_ROLE}@{ports}/{database}?target_session_attrs=read-write"));
    let service = client.as_service();
    service.spaces().update_space(space.id, rename("primary")).expect("the primary accepts writes");
    wait_until("the standby has followed", || read().is_ok_and(|space| space.name == "primary"));

    primary.stop();
    standby.promote();
    let new = NewSpace::named("after").with_id(Uuid::new_v4());
    wait_up_to(3 * DEADLINE, "the new writer is found", || match service.spaces().create_space(new.clone()) {
        Ok(created) => created.name == "after",
        Err(error) => {
            assert!(error.is_retryable(), "{error:?}");
            false
        }
    });
    assert_eq!(service.spaces().get_space(space.id).expect("read").name, "primary");
    // A client that reads only finds that its server accepts writes by now.
    reader.as_service().spaces().update_space(space.id, rename("promoted")).expect("renamed");
    client.close();
    reader.close();
}
