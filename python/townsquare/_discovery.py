"""Discovery and its records, as the extension module has them; the stub beside this file is their manual."""

from ._native import (
    AsyncDiscovery,
    Author,
    Discovery,
    DiscoveryStats,
    Engagement,
    HttpResponse,
    MiniApp,
)

__all__ = [
    "AsyncDiscovery",
    "Author",
    "Discovery",
    "DiscoveryStats",
    "Engagement",
    "HttpResponse",
    "MiniApp",
]
