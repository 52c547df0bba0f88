"""Files: upload, download and list under policies, an overwrite that notices others, and a signed URL."""

import townsquare

with townsquare.Client.open(":memory:") as client:
    user = client.auth.sign_up("ann@town.example", "correct horse")
    client.auth.sign_in("ann@town.example", "correct horse")
    space = client.spaces.create_space("Harbor", is_public=True)
    strangers = client.as_anonymous()

    # The path begins with the id of Ann's space, so she may write there. Everybody may read it.
    path = f"{space.id}/assets/tides.json"
    info = client.storage.upload("spaces", path, b'{"high": "06:12"}')
    print(info.size, "bytes,", info.content_type)
    print(strangers.storage.download("spaces", path).decode())
    print(strangers.storage.download("spaces", path, range=(1, 7)).decode())

    # A private file exists for its owner alone.
    homebase = f"{user.id}/homebase"
    client.storage.upload("private", homebase, b"{}")
    try:
        strangers.storage.download("private", homebase)
    except townsquare.NotFoundError as error:
        print(error)
    try:
        strangers.storage.upload("spaces", path, b"mine now")
    except townsquare.AuthError as error:
        print(error)

    # Somebody else writes first: the etag that we read is not the current one.
    client.storage.upload("spaces", path, b'{"high": "06:40"}')
    try:
        client.storage.upload("spaces", path, b'{"high": "06:15"}', if_match=info.etag)
    except townsquare.ConflictError as error:
        print("status", error.status)

    # A signed URL acts for Ann, for one file and one method. A browser may use it.
    url = client.storage.signed_url("private", homebase, expires_in=60)
    print("by URL:", client.storage.handle_file("GET", url).status)
    print("without the signature:", client.storage.handle_file("GET", url.split("?")[0]).status)

    for file in client.storage.list("spaces", str(space.id)):
        print("file:", file.path.removeprefix(f"{space.id}/"))
    print("deleted:", client.storage.delete_prefix("spaces", f"{space.id}/assets/"))
