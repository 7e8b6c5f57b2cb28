"""How much memory the service says it uses."""

from pathlib import Path

from monitoring.memory import memory_usage


def test_a_container_knows_its_limit(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.stat").write_text("anon 600\nfile 7\n")
    assert memory_usage(tmp_path) == {"used_bytes": 600, "limit_bytes": 1000}
    (tmp_path / "memory.max").write_text("max\n")
    alone = memory_usage(tmp_path)
    assert alone["limit_bytes"] is None
    assert alone["used_bytes"] > 1_000_000  # type: ignore[operator]
