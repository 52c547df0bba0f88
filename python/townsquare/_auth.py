"""Accounts, sessions and identity keys. The stub file beside this module documents them."""

from ._native import AsyncAuth, Auth, ImportReport, Session, SessionInfo, Subscription, User, identity_claim
