"""A move: everything of one client into an empty database and file store, compared at the end."""

import townsquare

with townsquare.Client.open("town") as client:
    client.auth.sign_up("ann@town.example", "correct horse")
    session = client.auth.create_session("ann@town.example", "correct horse")
    client.as_service().storage.upload("assets", "images/harbor.txt", b"a picture")

    # The target is named as for `open`. It may as well be postgres://… and s3://….
    print("target:", client.check_move(data_dir="moved"))
    report = client.move_to(data_dir="moved")
    print("users:", report.rows["users"], "files:", report.files, "resumed:", "yes" if report.resumed else "no")

with townsquare.Client.open("moved") as client:
    is_signed_in = client.as_user(session.access_token).auth.get_session() is not None
    print("still signed in:", "yes" if is_signed_in else "no")
    print(client.storage.download("assets", "images/harbor.txt").decode())
