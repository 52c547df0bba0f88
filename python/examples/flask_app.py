"""A community on Flask: accounts, spaces, files, events and the directory.

    pip install ./townsquare/python flask gunicorn
    gunicorn --threads 8 flask_app:app
"""

import atexit
from typing import Any, Tuple

import townsquare
from flask import Flask, Response, g, jsonify, request
from werkzeug.middleware.dispatcher import DispatcherMiddleware

client = townsquare.Client.open(catalog_url="sample:", expose_owner_email="verified", sign_up_limit=1_000, max_owner_bytes=10**8)
client.realtime.start()
atexit.register(client.close)
app = Flask(__name__)


@app.before_request
def find_caller() -> None:
    peer = client.with_client_key(request.remote_addr or "unknown")
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    # What is no valid token raises, and is answered with 401.
    g.caller = peer.as_user(token if scheme.lower() == "bearer" else "") if scheme else peer.as_anonymous()


@app.errorhandler(townsquare.Error)
def failed(error: townsquare.Error) -> Tuple[Response, int]:
    # The reason of an error of the server is for the log.
    shown = "Internal error" if error.status >= 500 else str(error)
    return jsonify(error=shown, explanation=error.explanation), error.status


@app.post("/sign-up")
def sign_up() -> Tuple[Any, int]:
    user = g.caller.auth.sign_up(request.json["email"], request.json["password"])
    return {"id": user.id}, 201


@app.post("/sign-in")
def sign_in() -> Any:
    session = g.caller.auth.create_session(request.json["email"], request.json["password"])
    return {"access_token": session.access_token, "refresh_token": session.refresh_token}


@app.post("/spaces")
def create_space() -> Tuple[Any, int]:
    is_public = request.args.get("is_public", "true") == "true"
    return jsonify(g.caller.spaces.create_space(request.args["name"], is_public=is_public)), 201


@app.get("/spaces")
def spaces() -> Any:
    return jsonify(g.caller.spaces.get_public_spaces())  # records are dataclasses, which Flask writes as JSON


# /town/files/BUCKET/PATH, /town/events?table=spaces, /town/api/miniapp-discovery and /town/health.
app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/town": townsquare.wsgi(client)})  # type: ignore[method-assign]
