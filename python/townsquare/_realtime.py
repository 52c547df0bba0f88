"""Changes of rows: the areas, their records and streams. The stub file beside this module documents them."""

from ._native import (
    AsyncChangeStream,
    AsyncLiveQuery,
    AsyncRealtime,
    Change,
    ChangeStream,
    LiveQuery,
    Realtime,
    RealtimeStats,
)
