"""Statistics in Prometheus' text format, version 0.0.4."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence

COMPILE_ENDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 30.0)
"""The upper ends of intervals of times to compile, in seconds."""


class Histogram:
    """How often something took so long: a count for each interval, and one for what took longer."""

    def __init__(
        self, ends: Sequence[float] = COMPILE_ENDS, counts: Sequence[int] | None = None, total: float = 0.0
    ) -> None:
        self.ends = tuple(ends)
        self.counts = [0] * (len(self.ends) + 1) if counts is None else list(counts)
        self.total = total

    def count(self, value: float) -> None:
        """Counts one more."""
        self.counts[bisect.bisect_left(self.ends, value)] += 1
        self.total += value

    def copy(self) -> Histogram:
        """The same counts."""
        return Histogram(self.ends, self.counts, self.total)


class Metrics:
    """A page in the text format."""

    def __init__(self, prefix: str, labels: Mapping[str, str] | None = None) -> None:
        self._prefix = prefix
        self._labels = dict(labels or {})
        self._lines: list[str] = []

    def counter(self, name: str, about: str, values: Mapping[str, float], label: str = "") -> None:
        """Samples that only grow, one for each value of a label."""
        self._samples(f"{self._prefix}_{name}_total", "counter", about, values, label)

    def gauge(self, name: str, about: str, values: Mapping[str, float], label: str = "") -> None:
        """Samples of what there is now."""
        self._samples(f"{self._prefix}_{name}", "gauge", about, values, label)

    def histogram(self, name: str, about: str, histogram: Histogram) -> None:
        """The counts up to each end, their sum, and how many there are."""
        full = f"{self._prefix}_{name}"
        self._head(full, "histogram", about)
        n = 0
        for end, count in zip((*map(repr, histogram.ends), "+Inf"), histogram.counts):
            n += count
            self._line(f"{full}_bucket", n, {"le": end})
        self._line(f"{full}_sum", histogram.total, {})
        self._line(f"{full}_count", n, {})

    def text(self) -> str:
        """The page."""
        return "\n".join(self._lines) + "\n"

    def _samples(self, full: str, kind: str, about: str, values: Mapping[str, float], label: str) -> None:
        self._head(full, kind, about)
        for value, number in values.items():
            self._line(full, number, {label: value} if label else {})

    def _head(self, full: str, kind: str, about: str) -> None:
        self._lines += [f"# HELP {full} {about}", f"# TYPE {full} {kind}"]

    def _line(self, name: str, number: float, labels: Mapping[str, str]) -> None:
        pairs = [f'{label}="{_escaped(value)}"' for label, value in {**self._labels, **labels}.items()]
        shown = "{" + ",".join(pairs) + "}" if pairs else ""
        self._lines.append(f"{name}{shown} {number!r}")


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
