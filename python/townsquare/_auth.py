"""Sign-in and its records, as the extension module has them; the stub beside this file is their manual."""

from ._native import (
    AsyncAuth,
    Auth,
    Session,
    Subscription,
    User,
    identity_claim,
)

__all__ = [
    "AsyncAuth",
    "Auth",
    "Session",
    "Subscription",
    "User",
    "identity_claim",
]
