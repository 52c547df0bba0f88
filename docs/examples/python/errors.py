"""Errors: branch on the kind, tell people what to do, and repeat only what may be repeated."""

import time
from typing import Callable, List, TypeVar

import townsquare

Result = TypeVar("Result")


def repeated(call: Callable[[], Result], tries: int = 3) -> Result:
    """Repeats a call that may be repeated, and waits longer each time."""
    wait = 0.1
    while True:
        try:
            return call()
        except townsquare.Error as error:
            tries -= 1
            if not error.is_retryable or tries == 0:
                raise
            time.sleep(error.retry_after or wait)
            wait *= 2


with townsquare.Client.open(":memory:") as client:
    service = client.as_service()
    space = repeated(lambda: service.spaces.create_space("Harbor"))

    # What a missing row means depends on the program: here a stranger asks for a private space.
    try:
        client.spaces.get_space(space.id)
    except townsquare.NotFoundError:
        print("There is no such space.")

    # The sentence is for a log, the explanation for the developer, the status for an HTTP answer.
    calls: List[Callable[[], object]] = [
        lambda: service.spaces.create_space("Quay", id=space.id),
        lambda: service.fidgets.create_fidget("0192f0c1-7a3b-7c4d-8e5f-000000000001", type="clock"),
        lambda: client.auth.list_users(),
    ]
    for call in calls:
        try:
            call()
        except townsquare.Error as error:
            print(error.kind, error.code, error.status, error)
            print("  try:", error.explanation)
