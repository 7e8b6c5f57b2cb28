"""What the snapshot cache keeps of each path, and what it makes of failures."""

import threading
import time
from typing import Any

from monitoring.gateway import GatewayResponse, GatewayUnavailable
from monitoring.snapshot_cache import MAX_CACHED_RESPONSES, MAX_WAIT_SECONDS, SnapshotCache


def cache_of(
    *responses: GatewayResponse | Exception,
) -> tuple[SnapshotCache, list[GatewayResponse | None], list[float]]:
    """Return a cache that reads these responses, the cached ones it read with, and its clock."""
    left, cached_ones, now = list(responses), list[GatewayResponse | None](), [100.0]

    def get(_: str, cached: GatewayResponse | None) -> GatewayResponse:
        cached_ones.append(cached)
        response = left.pop(0)
        if isinstance(response, Exception):
            raise response
        return response

    return SnapshotCache(get, lambda: now[0]), cached_ones, now


def test_one_read_serves_many_pages_and_a_failure_keeps_the_last() -> None:
    first, second = GatewayResponse(200, b"1", "a", 99.5), GatewayResponse(200, b"2", "b", 129.5)
    cache, reads, now = cache_of(first, GatewayUnavailable("open", "503"), second)
    assert [cache.read("/staff", 2).response for _ in range(10)] == [first] * 10
    assert reads == [None]
    now[0] = 110.0
    failed = cache.read("/staff", 2)
    assert (failed.circuit, failed.response) == ("open", first)
    now[0] = 130.0
    assert cache.read("/staff", 2)[:2] == ("closed", second)
    assert reads == [None, first, first]  # each read is conditional


def test_paths_are_cached_apart_and_not_for_ever() -> None:
    count = MAX_CACHED_RESPONSES + 2
    responses = [GatewayResponse(200, b"%d" % number, "", 0.0) for number in range(count)]
    cache, reads, _ = cache_of(*responses, responses[0])
    for number in range(count):
        assert cache.read(f"/{number}", 60).response == responses[number]
    assert cache.read(f"/{count - 1}", 60).response == responses[-1]
    assert len(reads) == count
    assert cache.read("/0", 60).response == responses[0]  # was dropped, so it is read again
    assert reads[-1] is None


def test_large_responses_do_not_pile_up() -> None:
    large = [GatewayResponse(200, b"x" * 1_000_000, "", 0.0) for _ in range(5)]
    cache, reads, _ = cache_of(*large, large[0])
    for number in range(5):
        cache.read(f"/{number}", 60)
    cache.read("/0", 60)
    assert len(reads) == 6


def test_a_hanging_gateway_does_not_hold_every_page() -> None:
    release = threading.Event()

    def get(*_: Any) -> GatewayResponse:
        release.wait(60)
        return GatewayResponse(200, b"[]", "", 0.0)

    cache = SnapshotCache(get)
    first = threading.Thread(target=cache.read, args=("/staff", 2))
    first.start()
    began = time.monotonic()
    assert cache.read("/staff", 2).circuit == "unknown"
    assert time.monotonic() - began < 30
    release.set()
    first.join()


def test_an_answer_is_shared_for_its_lifetime_and_no_longer_also_when_the_clock_steps_back() -> (
    None
):
    first, second, third, last = (GatewayResponse(200, b"%d" % n, "", 0.0) for n in range(4))
    cache, reads, now = cache_of(first, second, third, last)
    for when, wanted in ((100.0, first), (101.9, first), (102.0, second), (205.0, third)):
        now[0] = when
        assert cache.read("/staff", 2).response == wanted
    now[0] = 204.9  # however little: by its age it would be kept until the clock has caught up
    assert cache.read("/staff", 2).response == last
    assert len(reads) == 4


def test_what_was_used_last_is_kept_longest() -> None:
    responses = [GatewayResponse(200, b"%d" % n, "", 0.0) for n in range(MAX_CACHED_RESPONSES + 1)]
    cache, reads, _ = cache_of(*responses)
    for number in range(MAX_CACHED_RESPONSES):
        cache.read(f"/{number}", 60)
    cache.read("/0", 60)
    cache.read("/one more", 60)  # in the place of /1
    cache.read("/0", 60)
    assert len(reads) == MAX_CACHED_RESPONSES + 1


def test_its_bounds_are_what_fits_the_memory_and_the_threads() -> None:
    assert (MAX_WAIT_SECONDS, MAX_CACHED_RESPONSES) == (1, 100)


def test_three_megabytes_are_kept_and_not_a_byte_more() -> None:
    mebibyte = GatewayResponse(200, b"x" * 1024 * 1024, "", 0.0)
    cache, reads, _ = cache_of(*[mebibyte] * 3, mebibyte._replace(body=b"x"), mebibyte)
    for number in range(3):
        cache.read(f"/{number}", 60)
    cache.read("/a byte", 60)
    cache.read("/0", 60)
    assert len(reads) == 4  # nothing was dropped before it was too much
    cache.read("/a byte", 60)
    cache.read("/1", 60)
    assert len(reads) == 5  # /1, which was not used for the longest time


def test_what_is_too_large_alone_is_kept_alone() -> None:
    large = GatewayResponse(200, b"x" * 4 * 1024 * 1024, "", 0.0)
    small = GatewayResponse(200, b"x", "", 0.0)
    cache, reads, _ = cache_of(large, small, small)
    for _ in range(3):
        assert cache.read("/large", 60).response == large
    assert len(reads) == 1
    for path in ("/small", "/large", "/small"):
        cache.read(path, 60)
    assert len(reads) == 3
