"""The first program of the book: find mini apps, sign up, and make a space."""

import townsquare

with townsquare.Client.open(":memory:", catalog_url="sample:") as client:
    for app in client.discovery.search_mini_apps("chess", limit=3):
        print(app.name, app.home_url)

    client.auth.sign_up("ann@town.example", "correct horse")
    client.auth.sign_in("ann@town.example", "correct horse")  # from here on the client acts for Ann
    client.spaces.create_space("Harbor", is_public=True)

    for space in client.spaces.get_public_spaces(limit=20):
        print("public space:", space.name)
