"""The mini app directory and its records. The stub file beside this module documents them."""

from ._native import (
    AsyncDiscovery,
    Author,
    Discovery,
    DiscoveryStats,
    Engagement,
    Facet,
    Highlight,
    HttpResponse,
    MiniApp,
    Suggestion,
)
