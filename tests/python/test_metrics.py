"""Metrics: what happens is counted, as a dict and for Prometheus."""

from __future__ import annotations

from typing import Any

import pytest
import townsquare
from conftest import run
from townsquare import AsyncClient, Client, NotFoundError


def calls(metrics: Any, operation: str, outcome: str) -> float:
    samples = metrics.get("townsquare_operations_total", {"samples": []})["samples"]
    labels = {"operation": operation, "outcome": outcome}
    return sum(sample["value"] for sample in samples if sample["labels"] == labels)


def test_calls_are_counted_by_operation_and_outcome(service: Client) -> None:
    space = service.spaces.create_space("Harbor")
    service.spaces.get_space(space.id)
    with pytest.raises(NotFoundError):
        service.as_anonymous().spaces.get_space(space.id)
    metrics = service.metrics()
    assert calls(metrics, "get_space", "ok") == 1 and calls(metrics, "get_space", "not_found") == 1
    times = metrics["townsquare_operation_seconds"]
    assert (times["kind"], times["unit"]) == ("histogram", "seconds")
    (of_reads,) = [sample for sample in times["samples"] if sample["labels"] == {"operation": "get_space"}]
    assert of_reads["count"] == 2 and 0 < of_reads["sum"] and of_reads["buckets"][-1][1] <= 2
    assert 'townsquare_operations_total{operation="get_space",outcome="not_found"} 1\n' in service.metrics_text()


def test_the_async_client_has_them_too() -> None:
    async def work() -> None:
        async with AsyncClient.open(":memory:", catalog_url="sample:") as client:
            await client.discovery.get_trending_mini_apps()
            metrics = await client.metrics()
            assert metrics["townsquare_catalog_apps"]["samples"] == [{"labels": {}, "value": 40.0}]
            assert (await client.metrics_text()).startswith("# HELP ")

    run(work())


def test_a_closed_client_has_none(client: Client) -> None:
    client.close()
    with pytest.raises(townsquare.ClosedError, match="Get metrics failed"):
        client.metrics()
