"""Sign-in: accounts, sessions for many users, rotating tokens, a forgotten password, and the end of every session."""

import townsquare


def caller(client: townsquare.Client) -> str:
    session = client.auth.get_session()
    return session.user.email if session else "nobody"


with townsquare.Client.open(":memory:") as client:
    user = client.auth.sign_up("  Ann@Town.example ", "correct horse")
    print("signed up:", user.email)

    # A server signs users in by create_session. The caller of `client` stays anonymous.
    session = client.auth.create_session("ann@town.example", "correct horse")
    ann = client.as_user(session.access_token)
    print("the handle acts for:", caller(ann))
    print("the client acts for:", caller(client))

    try:
        client.auth.create_session("ann@town.example", "wrong horse")
    except townsquare.AuthError as error:
        print(error)
    try:
        client.auth.create_session("nobody@town.example", "correct horse")
    except townsquare.AuthError as error:
        print(error)

    # New tokens replace the old ones: the old access token ends.
    renewed = client.auth.refresh_session(session.refresh_token)
    try:
        client.as_user(session.access_token)
    except townsquare.AuthError as error:
        print("the old token:", error.kind)

    # Ann forgot her password. The program mails her this token; nobody else must see it.
    token = client.as_service().auth.create_recovery_token("ann@town.example")
    assert token is not None
    client.auth.recover(token, "a new password")
    print("recovered:", caller(client))

    # A recovery ends every earlier session, on every device.
    try:
        client.as_user(renewed.access_token)
    except townsquare.AuthError as error:
        print("the renewed token:", error.kind)

    client.auth.sign_out()
    print("the client acts for:", caller(client))
