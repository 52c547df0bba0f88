//! The operations that are measured: each is one call, timed without its preparation.

use std::{
    collections::BTreeMap,
    hint::black_box,
    time::{Duration, Instant},
};

use townsquare::{
    Json, Result, Timestamp, Uuid,
    auth::{SignOutScope, UserPatch, identity_claim},
    blocking::Client,
    check::CheckDepth,
    communities::{CommunityPatch, DomainType, NewRegistration, SpaceType},
    realtime::{ChangeRequest, LiveRequest},
    spaces::{FidgetPatch, NewFidget, NewSpace, SpacePatch},
    storage::{ListFiles, Overwrite, UploadOptions, UrlMethod},
};

use crate::{
    Filled,
    fill::{PASSWORD, Sample, address},
};

/// Calls of an operation that takes a millisecond.
const ROUNDS: usize = 300;

/// Calls of an operation that hashes a password, or changes much.
const FEW: usize = 40;

pub(crate) struct Operation {
    pub(crate) name: String,
    pub(crate) rounds: usize,
    pub(crate) run: Box<dyn Fn(&mut Filled) -> Duration>,
}

fn operation(name: impl Into<String>, rounds: usize, run: impl Fn(&mut Filled) -> Duration + 'static) -> Operation {
    Operation { name: name.into(), rounds, run: Box::new(run) }
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Duration {
    let start = Instant::now();
    let done = work();
    let taken = start.elapsed();
    drop(black_box(done.expect("the operation succeeds")));
    taken
}

/// A read that each caller makes: of a public space, its fidget or its file.
fn read<T: 'static>(name: &str, call: fn(&Client, &Sample) -> Result<T>) -> Vec<Operation> {
    let as_caller = |caller: &'static str, client: fn(&Filled) -> &Client| {
        operation(format!("{name}, {caller}"), ROUNDS, move |filled| {
            let next = filled.next();
            let sample = &filled.public[next % filled.public.len()];
            timed(|| call(client(filled), sample))
        })
    };
    vec![
        as_caller("anonymous", |filled| &filled.anonymous),
        as_caller("user", |filled| &filled.user),
        as_caller("service", |filled| &filled.service),
    ]
}

/// A call of the service.
fn service<T: 'static>(name: &str, call: fn(&Client, &Filled, &Sample) -> Result<T>) -> Operation {
    operation(format!("{name}, service"), ROUNDS, move |filled| {
        let next = filled.next();
        timed(|| call(&filled.service, filled, &filled.public[next % filled.public.len()]))
    })
}

/// A call of the user on one of their own spaces.
fn own<T: 'static>(name: &str, call: fn(&Client, &Sample, usize) -> Result<T>) -> Operation {
    operation(format!("{name}, user"), ROUNDS, move |filled| {
        let next = filled.next();
        timed(|| call(&filled.user, &filled.own[next % filled.own.len()], next))
    })
}

pub(crate) fn all() -> Vec<Operation> {
    let mut all = reads();
    all.extend(lists());
    all.extend(writes());
    all.extend(files());
    all.extend(communities());
    all.extend(accounts());
    all.extend(realtime());
    all
}

fn reads() -> Vec<Operation> {
    let mut all = Vec::new();
    all.extend(read("get_space", |client, at| client.spaces().get_space(at.space)));
    all.extend(read("get_space_with_fidgets", |client, at| client.spaces().get_space_with_fidgets(at.space)));
    all.extend(read("get_user_spaces", |client, at| client.spaces().get_user_spaces(at.owner)));
    all.extend(read("get_fidget", |client, at| client.fidgets().get_fidget(at.fidget)));
    all.extend(read("get_space_fidgets", |client, at| client.fidgets().get_space_fidgets(at.space)));
    all.extend(read("get_space_fidgets_after", |client, at| {
        client.fidgets().get_space_fidgets_after(at.space, 5, Some(at.fidget.into()))
    }));
    all.extend(read("get_public_spaces, first page", |client, _| client.spaces().get_public_spaces(20, 0)));
    all.extend(read("get_public_spaces, offset 1,000", |client, _| client.spaces().get_public_spaces(20, 1_000)));
    all.extend(read("get_public_spaces_after, any depth", |client, at| {
        client.spaces().get_public_spaces_after(20, at.space)
    }));
    all.extend(read("get_space_registration", |client, at| client.communities().get_space_registration(at.space)));
    all.push(own("get_space, own", |client, at, _| client.spaces().get_space(at.space)));
    all.push(own("get_user_spaces, own", |client, at, _| client.spaces().get_user_spaces(at.owner)));
    all
}

fn lists() -> Vec<Operation> {
    vec![
        service("list_spaces, first page", |client, _, _| client.spaces().list_spaces(100, None)),
        service("list_spaces, any depth", |client, _, at| client.spaces().list_spaces(100, Some(at.space))),
        service("list_users, any depth", |client, _, at| client.auth().list_users(100, Some(at.space))),
        service("list_community_configs, any depth", |client, _, at| {
            client.communities().list_community_configs(100, Some(at.space))
        }),
        service("list_community_domains, any depth", |client, _, at| {
            client.communities().list_community_domains(100, Some(at.space))
        }),
        service("list_space_registrations, any depth", |client, _, at| {
            client.communities().list_space_registrations(100, Some(at.space))
        }),
        service("export_rows, first row of fidgets", |client, _, _| {
            client.export_rows(&["fidgets"])?.next().transpose()
        }),
    ]
}

fn writes() -> Vec<Operation> {
    vec![
        own("create_space", |client, _, _| client.spaces().create_space(NewSpace::named("New").public())),
        own("create_space with an id", |client, _, _| {
            client.spaces().create_space(NewSpace::named("New").with_id(Uuid::new_v4()))
        }),
        own("create_spaces, ten", |client, _, _| client.spaces().create_spaces(vec![NewSpace::named("New"); 10])),
        own("update_space", |client, at, next| {
            client.spaces().update_space(at.space, SpacePatch::new().name(format!("Name {next}")))
        }),
        operation("update_space, published and hidden, user", ROUNDS, |filled| {
            let (next, spaces) = (filled.next(), filled.user.spaces());
            let id = filled.own[0].space;
            let patch = if next % 2 == 0 { SpacePatch::new().hidden() } else { SpacePatch::new().published() };
            timed(|| spaces.update_space(id, patch))
        }),
        service("set_owner", |client, filled, at| {
            client.spaces().set_owner(at.space, if at.number % 2 == 0 { filled.user_id } else { at.owner })
        }),
        operation("delete_space with ten fidgets, user", ROUNDS, |filled| {
            let space = filled.user.spaces().create_space(NewSpace::named("Short")).expect("a space").id;
            let fidgets = vec![NewFidget::of_type("clock"); 10];
            filled.user.fidgets().create_fidgets(space, fidgets).expect("fidgets");
            timed(|| filled.user.spaces().delete_space(space))
        }),
        own("create_fidget and delete_fidget", |client, at, _| {
            let fidget = client.fidgets().create_fidget(at.space, NewFidget::of_type("clock"))?;
            client.fidgets().delete_fidget(fidget.id)
        }),
        own("update_fidget", |client, at, next| {
            client.fidgets().update_fidget(at.fidget, FidgetPatch::new().config(Some(next.into())))
        }),
        own("save_positions", |client, at, next| {
            client.fidgets().save_positions(at.space, BTreeMap::from([(at.fidget, Some(Json::from(next)))]))
        }),
    ]
}

fn files() -> Vec<Operation> {
    let page = |at: &Sample| format!("{}/page.txt", at.space);
    let mut all = read("stat", |client, at| client.storage().stat("spaces", &format!("{}/page.txt", at.space)));
    all.extend(read("download", |client, at| client.storage().download("spaces", &format!("{}/page.txt", at.space))));
    all.extend(read("list, a space", |client, at| {
        client.storage().list("spaces", ListFiles::with_prefix(format!("{}/", at.space)))
    }));
    all.extend(read("list, all spaces", |client, _| client.storage().list("spaces", ListFiles::new())));
    all.extend(read("list, all spaces, any depth", |client, at| {
        client.storage().list("spaces", ListFiles::new().after(format!("{}/page.txt", at.space)))
    }));
    all.extend(read("list, assets, any depth", |client, at| {
        client.storage().list("assets", ListFiles::new().after(at.space.to_string()))
    }));
    all.push(service("list, private files, any depth", |client, _, at| {
        client.storage().list("private", ListFiles::new().after(at.space.to_string()))
    }));
    all.extend([
        own("list, own private files", |client, _, _| client.storage().list("private", ListFiles::new())),
        own("upload", |client, at, next| {
            client.storage().upload("spaces", &format!("{}/{}.txt", at.space, next % 5), "text", UploadOptions::new())
        }),
        own("copy", |client, at, _| {
            let [source, target] = ["page.txt", "copy.txt"].map(|name| format!("{}/{name}", at.space));
            client.storage().copy("spaces", &source, &target, Overwrite::Replace)
        }),
        own("move_file, there and back", |client, at, _| {
            let [source, target] = ["page.txt", "moved.txt"].map(|name| format!("{}/{name}", at.space));
            client.storage().move_file("spaces", &source, &target, Overwrite::Replace)?;
            client.storage().move_file("spaces", &target, &source, Overwrite::Replace)
        }),
        operation("delete, user", ROUNDS, move |filled| {
            let path = page(&filled.own[0]).replace("page", "gone");
            filled.user.storage().upload("spaces", &path, "text", UploadOptions::new()).expect("uploaded");
            timed(|| filled.user.storage().delete("spaces", &path))
        }),
        operation("delete_prefix, user", ROUNDS, move |filled| {
            let folder = format!("{}/folder/", filled.own[0].space);
            let path = format!("{folder}file.txt");
            filled.user.storage().upload("spaces", &path, "text", UploadOptions::new()).expect("uploaded");
            timed(|| filled.user.storage().delete_prefix("spaces", &folder))
        }),
        own("signed_url", |client, at, _| {
            let path = format!("{}/page.txt", at.space);
            client.storage().signed_url("spaces", &path, UrlMethod::Get, Duration::from_secs(60))
        }),
    ]);
    all
}

fn communities() -> Vec<Operation> {
    let mut all = read("get_active_community_config", |client, at| {
        client.communities().get_active_community_config(&format!("community-{}", at.number % 10))
    });
    all.extend(read("resolve_community", |client, at| {
        client.communities().resolve_community(&format!("town-{}.example", at.number % 10))
    }));
    all.extend([
        service("save_community_config", |client, _, at| {
            let json = || serde_json::json!({ "number": 1 });
            let patch = CommunityPatch::with_required(json(), json(), json(), json());
            client.communities().save_community_config(&format!("community-{}", at.number % 10), patch)
        }),
        service("save_community_domain and delete_community_domain", |client, _, at| {
            let (community, domain) = (format!("community-{}", at.number % 10), format!("new-{}.example", at.space));
            client.communities().save_community_domain(&community, &domain, DomainType::BlankSubdomain)?;
            client.communities().delete_community_domain(&domain)
        }),
        own("update_navigation", |client, _, next| {
            client.communities().update_navigation("community-0", Some(next.into()))
        }),
        operation("register_space, user", ROUNDS, |filled| {
            let space = filled.user.spaces().create_space(NewSpace::named("New")).expect("a space").id;
            let registration = NewRegistration::new(space, "New", SpaceType::NavPage);
            timed(|| filled.user.communities().register_space(registration))
        }),
    ]);
    all
}

fn accounts() -> Vec<Operation> {
    let mut all = vec![
        service("find_user", |client, filled, at| client.auth().find_user(&address(at.number % filled.users))),
        service("sessions_of", |client, _, at| client.auth().sessions_of(at.owner)),
        service("identities_of", |client, _, at| client.auth().identities_of(at.owner)),
        service("create_recovery_token", |client, filled, at| {
            client.auth().create_recovery_token(&address(at.number % filled.users))
        }),
        operation("create_verification_token and verify_email", ROUNDS, |filled| {
            let auth = filled.service.auth();
            timed(|| auth.verify_email(&auth.create_verification_token(filled.user_id)?))
        }),
        service("end_sessions", |client, _, at| client.auth().end_sessions(at.owner)),
        own("identities", |client, _, _| client.auth().identities()),
        operation("as_user", ROUNDS, |filled| {
            let token = filled.access_token.clone();
            timed(|| filled.client.as_user(&token))
        }),
        operation("refresh_session_of", ROUNDS, |filled| {
            let mut session = None;
            let taken = timed(|| {
                session = Some(filled.client.auth().refresh_session_of(&filled.refresh_token)?);
                Ok(())
            });
            filled.take(&session.expect("a session"));
            taken
        }),
        operation("link_identity and unlink_identity, user", ROUNDS, |filled| {
            let key = format!("{:064x}", filled.next() + 1);
            let audience = filled.user.auth().identity_audience().expect("an audience");
            let claim = identity_claim(filled.user_id, &key, &audience, Timestamp::now()).expect("a claim");
            let public_key = claim["publicKey"].as_str().expect("text").to_owned();
            let auth = filled.user.auth();
            timed(|| auth.link_identity(&claim).and_then(|()| auth.unlink_identity(&public_key)))
        }),
    ];
    all.extend(password_checks());
    all
}

/// Operations that hash a password, which takes most of their time.
fn password_checks() -> Vec<Operation> {
    vec![
        operation("sign_up", FEW, |filled| {
            let email = format!("new-{}@town.example", filled.next());
            timed(|| filled.anonymous.auth().sign_up(&email, PASSWORD))
        }),
        operation("create_session", FEW, |filled| {
            let email = address(filled.next_user());
            timed(|| filled.client.auth().create_session(&email, PASSWORD))
        }),
        operation("set_password, service", FEW, |filled| {
            let next = filled.next();
            timed(|| filled.service.auth().set_password(filled.public[next % filled.public.len()].owner, PASSWORD))
        }),
        operation("update_user, e-mail, user", FEW, |filled| {
            let (session, next) = (filled.other_session(), filled.next());
            let user = filled.client.as_user(&session.access_token).expect("a user");
            let patch = UserPatch::new().email(format!("other-{next}@town.example"));
            timed(|| user.auth().update_user(PASSWORD, patch))
        }),
        operation("recover", FEW, |filled| {
            let email = address(filled.next_user());
            let token = filled.service.auth().create_recovery_token(&email).expect("works").expect("a user");
            timed(|| filled.client.as_anonymous().auth().recover(&token, PASSWORD))
        }),
        operation("sign_out, user", FEW, |filled| {
            let session = filled.other_session();
            let user = filled.client.as_user(&session.access_token).expect("a user");
            timed(|| user.auth().sign_out())
        }),
        operation("sign_out of all sessions, user", FEW, |filled| {
            let session = filled.other_session();
            let user = filled.client.as_user(&session.access_token).expect("a user");
            timed(|| user.auth().sign_out_scope(SignOutScope::Global))
        }),
        operation("end_session, service", FEW, |filled| {
            let user = filled.other_session().user.id;
            let session = filled.service.auth().sessions_of(user).expect("sessions")[0].id;
            timed(|| filled.service.auth().end_session(user, session))
        }),
        operation("delete_user with ten spaces, service", FEW, |filled| {
            let email = address(filled.next_user());
            let user = filled.service.auth().find_user(&email).expect("works").expect("a user").id;
            timed(|| filled.service.auth().delete_user(user))
        }),
    ]
}

fn realtime() -> Vec<Operation> {
    vec![
        service("cursor", |client, _, _| client.realtime().cursor()),
        service("realtime stats", |client, _, _| client.realtime().stats()),
        operation("changes since the change before", ROUNDS, |filled| {
            let cursor = filled.service.realtime().cursor().expect("a cursor");
            let patch = FidgetPatch::new().config(Some(filled.next().into()));
            filled.service.fidgets().update_fidget(filled.own[0].fidget, patch).expect("changed");
            let request = ChangeRequest::table("fidgets").since(&cursor);
            timed(|| filled.service.realtime().changes(request)?.next().transpose())
        }),
        own("live, the fidgets of a space", |client, at, _| {
            client.realtime().live(LiveRequest::table("fidgets").filter(format!("space_id=eq.{}", at.space)))
        }),
        operation("subscribe and unsubscribe, user", ROUNDS, |filled| {
            let request = ChangeRequest::table("fidgets").filter(format!("space_id=eq.{}", filled.own[0].space));
            timed(|| {
                filled.user.realtime().subscribe("fidgets", request, |_| ())?.unsubscribe();
                Ok(())
            })
        }),
        operation("check, quick, service", 3, |filled| timed(|| filled.service.check(CheckDepth::Quick))),
        operation("open and close", 10, |filled| {
            timed(|| {
                Client::open(filled.config())?.close();
                Ok(())
            })
        }),
    ]
}
