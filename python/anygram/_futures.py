"""Compiling on other threads: what `Compiler.submit` returns."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from anygram._native import Cancel, Compiler, Language

_executors: dict[int, ThreadPoolExecutor] = {}
"""By process id: threads do not survive a fork."""


class Compilation(Future[Language]):
    """A language that is being compiled. Its `cancel` also stops work that has begun."""

    def __init__(self, stop: Cancel) -> None:
        super().__init__()
        self._stop = stop

    def cancel(self) -> bool:
        """Asks it to stop. `False` if it had begun: then it ends with `Cancelled`, if it is not done."""
        self._stop.cancel()
        return super().cancel()


def submit(compiler: Compiler, source: Any, format: Any, start: str | None) -> Compilation:
    """Compiles on a thread of the package's own, a few at a time."""
    stop = Cancel()
    compilation = Compilation(stop)

    def run() -> None:
        if not compilation.set_running_or_notify_cancel():
            return
        try:
            language = compiler.compile(source, format, start=start, cancel=stop)
        except BaseException as error:
            compilation.set_exception(error)
        else:
            compilation.set_result(language)

    _executor().submit(run)
    return compilation


def _executor() -> ThreadPoolExecutor:
    process = os.getpid()
    if process not in _executors:
        _executors[process] = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="anygram-compile")
    return _executors[process]
