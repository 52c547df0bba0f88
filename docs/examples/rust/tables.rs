//! Tables and policies: who sees a private space, who may change a public one, and what the service may do.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

// ANCHOR: program
use townsquare::{
    Config, Json, Result,
    blocking::Client,
    communities::{CommunityPatch, DomainType},
    spaces::{NewFidget, NewSpace, SpacePatch},
};

/// Creates an account and returns a handle that acts for it.
fn user(client: &Client, email: &str) -> Result<Client> {
    client.auth().sign_up(email, "correct horse")?;
    let session = client.auth().create_session(email, "correct horse")?;
    client.as_user(&session.access_token)
}

fn main() -> Result<()> {
    let client = Client::open(Config::new().data_dir(":memory:"))?;
    let ann = user(&client, "ann@town.example")?;
    let bob = user(&client, "bob@town.example")?;

    // Ann's space is private: for Bob it does not exist.
    let space = ann.spaces().create_space(NewSpace::named("Harbor").description("Boards and tides"))?;
    ann.fidgets().create_fidget(space.id, NewFidget::of_type("chess").position(vec![0, 0]))?;
    ann.fidgets().create_fidget(space.id, NewFidget::of_type("tides").position(vec![4, 0]))?;
    if let Err(error) = bob.spaces().get_space(space.id) {
        println!("Bob: {}", error.message());
    }

    // Ann publishes it. Now Bob sees it, with its fidgets, and still cannot change it.
    ann.spaces().update_space(space.id, SpacePatch::new().published())?;
    let seen = bob.spaces().get_space_with_fidgets(space.id)?;
    let kinds: Vec<_> = seen.fidgets.iter().map(|fidget| fidget.kind.as_str()).collect();
    println!("Bob sees: {} {}", seen.space.name, kinds.join(" "));
    if let Err(error) = bob.spaces().update_space(space.id, SpacePatch::new().name("Bob's")) {
        println!("Bob: {}", error.message());
    }
    if let Err(error) = bob.fidgets().create_fidget(space.id, NewFidget::of_type("clock")) {
        println!("Bob: {} {}", error.kind().as_str(), error.code().unwrap_or_default());
    }

    // Communities are the work of the service: trusted code of the program itself.
    let service = client.as_service();
    let empty = || Json::Object(Default::default());
    let patch = CommunityPatch::with_required(Json::from("blue"), empty(), empty(), empty());
    service.communities().save_community_config("harbor", patch)?;
    service.communities().save_community_domain("harbor", "Harbor.Example", DomainType::Custom)?;
    let community = client.communities().resolve_community("harbor.example")?;
    println!("community of harbor.example: {}", community.unwrap_or_default());
    let active = client.communities().get_active_community_config("harbor")?;
    println!("published: {}", if active.is_some() { "yes" } else { "no" });

    // Deleting a space deletes its fidgets.
    ann.spaces().delete_space(space.id)?;
    println!("public spaces: {}", client.spaces().get_public_spaces(20, 0)?.len());
    client.close();
    Ok(())
}
// ANCHOR_END: program

/// Runs the program in the test of the book.
pub(super) fn run() -> Result<()> {
    main()
}
