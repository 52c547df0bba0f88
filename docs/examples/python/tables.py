"""Tables and policies: who sees a private space, who may change a public one, and what the service may do."""

import townsquare

with townsquare.Client.open(":memory:") as client:
    handles = {}
    for name in ("ann", "bob"):
        client.auth.sign_up(f"{name}@town.example", "correct horse")
        session = client.auth.create_session(f"{name}@town.example", "correct horse")
        handles[name] = client.as_user(session.access_token)
    ann, bob = handles["ann"], handles["bob"]

    # Ann's space is private: for Bob it does not exist.
    space = ann.spaces.create_space("Harbor", description="Boards and tides")
    ann.fidgets.create_fidget(space.id, "chess", position={"x": 0, "y": 0})
    ann.fidgets.create_fidget(space.id, "tides", position={"x": 4, "y": 0})
    try:
        bob.spaces.get_space(space.id)
    except townsquare.NotFoundError as error:
        print("Bob:", error.message)

    # Ann publishes it. Now Bob sees it, with its fidgets, and still cannot change it.
    ann.spaces.update_space(space.id, is_public=True)
    seen = bob.spaces.get_space_with_fidgets(space.id)
    print("Bob sees:", seen.name, *[fidget.type for fidget in seen.fidgets])
    try:
        bob.spaces.update_space(space.id, name="Bob's")
    except townsquare.NotFoundError as error:
        print("Bob:", error.message)
    try:
        bob.fidgets.create_fidget(space.id, "clock")
    except townsquare.AuthError as error:
        print("Bob:", error.kind, error.code)

    # Communities are the work of the service: trusted code of the program itself.
    service = client.as_service()
    service.communities.save_community_config(
        "harbor", brand_config={"colour": "blue"}, assets_config={}, community_config={}, fidgets_config={}
    )
    service.communities.save_community_domain("harbor", "Harbor.Example", "custom")
    print("community of harbor.example:", client.communities.resolve_community("harbor.example"))
    active = client.communities.get_active_community_config("harbor")
    print("published:", "yes" if active else "no")

    # Deleting a space deletes its fidgets.
    ann.spaces.delete_space(space.id)
    print("public spaces:", len(client.spaces.get_public_spaces()))
