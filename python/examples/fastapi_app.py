"""A community on FastAPI: accounts, spaces, files, events and the directory.

    pip install ./townsquare/python fastapi uvicorn && uvicorn --timeout-graceful-shutdown 5 fastapi_app:app
"""

from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, AsyncIterator, Dict, List

import townsquare
from fastapi import Body, Depends, FastAPI
from fastapi.responses import FileResponse
from townsquare.fastapi import answer_errors, caller

client = townsquare.Client.open(catalog_url="sample:", expose_owner_email="verified", sign_up_limit=1_000, max_owner_bytes=10**8)
Text = Annotated[str, Body()]
Caller = Annotated[townsquare.AsyncClient, Depends(caller(client))]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    client.realtime.start()
    yield
    client.close()


app = FastAPI(lifespan=lifespan)
answer_errors(app)


@app.post("/sign-up", status_code=201)
async def sign_up(caller: Caller, email: Text, password: Text) -> Dict[str, str]:
    return {"id": str((await caller.auth.sign_up(email, password)).id)}


@app.post("/sign-in")
async def sign_in(caller: Caller, email: Text, password: Text) -> Dict[str, str]:
    session = await caller.auth.create_session(email, password)
    return {"access_token": session.access_token, "refresh_token": session.refresh_token}


@app.post("/spaces", status_code=201)
async def create_space(caller: Caller, name: str, is_public: bool = True) -> townsquare.Space:
    return await caller.spaces.create_space(name, is_public=is_public)


@app.get("/spaces")
async def spaces(caller: Caller) -> List[townsquare.PublicSpace]:
    return await caller.spaces.get_public_spaces()


app.add_api_route("/", lambda: FileResponse(Path(__file__).with_name("community.html")), include_in_schema=False)
# /files/BUCKET/PATH, /events?table=spaces (which the page follows), /api/miniapp-discovery and /health.
app.mount("/", townsquare.asgi(client))
