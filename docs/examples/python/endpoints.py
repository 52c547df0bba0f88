"""HTTP: one function answers every endpoint, for whatever server the program has."""

import townsquare


def show(response: townsquare.HttpStream, *, body: bool = True) -> None:
    print(response.status, b"".join(response).decode() if body else response.headers["content-type"])


with townsquare.Client.open(":memory:", catalog_url="sample:") as client:
    client.auth.sign_up("ann@town.example", "correct horse")
    token = client.auth.create_session("ann@town.example", "correct horse").access_token
    bearer = {"authorization": f"Bearer {token}"}

    # A server answers each peer on a handle of its own, so that the limits count for that peer.
    peer = client.with_client_key("203.0.113.7")
    show(peer.handle_request("GET", "/health"))
    show(peer.handle_request("GET", "/api/miniapp-discovery?category=games&limit=1"), body=False)
    print(peer.handle_request("PUT", "/files/assets/notes/a.txt", b"hello", bearer).status)
    show(peer.handle_request("GET", "/files/assets/notes/a.txt"))
    print(peer.handle_request("PUT", "/files/assets/notes/a.txt", b"mine").status, "without a token")
    print(peer.handle_request("GET", "/files/assets/notes/a.txt", headers={"authorization": "Bearer guess"}).status, "with a wrong token")
    print(peer.handle_request("GET", "/events?table=spaces").status, "while the change log is off")
    client.realtime.start()
    print(peer.handle_request("GET", "/events?table=spaces").status, "afterwards")
