"""Energy as processors count it themselves (Intel RAPL, by Linux's powercap), where they do."""

from __future__ import annotations

from pathlib import Path

POWERCAP = Path("/sys/class/powercap")


class Counters:
    """The packages' counters as they stand; whole machine, so nothing else should run."""

    def __init__(self, folder: Path = POWERCAP) -> None:
        self._packages = [
            path for path in sorted(folder.glob("intel-rapl:*")) if path.name.count(":") == 1
        ]
        self._before = self._read()

    def _read(self) -> list[int] | None:
        try:
            counts = [int((path / "energy_uj").read_text()) for path in self._packages]
        except (OSError, ValueError):
            return None
        return counts or None

    def joules(self) -> float | None:
        """What was taken since this object was made; None where the system does not tell."""
        now = self._read()
        if now is None or self._before is None:
            return None
        taken = 0
        for path, before, after in zip(self._packages, self._before, now, strict=True):
            taken += after - before
            if after < before:  # the counter began anew
                taken += int((path / "max_energy_range_uj").read_text())
        return taken / 1e6
