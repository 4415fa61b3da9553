"""Masks that outputs are likely to need, computed while the model computes. No engine is imported here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from anygram._native import Cancel, MaskTimes, Matcher

PAUSE_SECONDS = 0.0005
"""How long nobody asked for anything before it begins: the masks of one step come one after another."""

NEW_STEPS = 8
"""So many steps after a mask that had to be computed an output counts as one that comes to new situations."""

IDLE_SECONDS = 10.0
"""After this time without work the thread ends; it is begun again when there is some."""


class Working(Protocol):
    """An output, as far as it matters here."""

    matcher: Matcher
    has_ended: bool
    n_new: int
    """For how many more steps it counts as one that comes to new situations."""


class WorkAhead:
    """One thread that computes masks ahead for the outputs of a service, while nobody waits for a mask.

    Outputs say when they got their masks (`begin`), and before anything else is done with them (`stop`). Masks
    stay the same. Where all masks are looked up, nothing is done. All methods may be called on any thread.

    Args:
        times: where the masks of the outputs are counted.
        masks: the most situations of an output that are looked at in a step.
        stand_back: called on the thread before anything else.
    """

    def __init__(self, times: MaskTimes, masks: int, stand_back: Callable[[], None] | None = None) -> None:
        self.n_masks = 0
        """Situations that were looked at."""
        self._times, self._masks, self._stand_back = times, masks, stand_back
        self._n_computed = times.computed
        self._is_closed = False
        self.in_child()

    def in_child(self) -> None:
        """After a fork: there is no thread."""
        self._lock = threading.Lock()
        self._is_wanted = threading.Event()
        # Those that wait for the model; the first has waited longest.
        self._outputs: dict[int, Working] = {}
        self._cancel: Cancel | None = None
        self._asked = 0.0
        self._has_thread = False

    def begin(self, outputs: Iterable[Working]) -> None:
        """These outputs just got their masks."""
        computed = self._times.computed
        with self._lock:
            is_new, self._n_computed = computed != self._n_computed, computed
            for output in outputs:
                output.n_new = NEW_STEPS if is_new else output.n_new - 1
                if output.n_new <= 0 or output.has_ended or self._is_closed:
                    output.n_new = 0
                    continue
                self._outputs[id(output)] = output
            if not self._outputs:
                return
            self._asked = time.monotonic()
            if not self._has_thread:
                self._has_thread = True
                threading.Thread(target=self._run, name="anygram-ahead", daemon=True).start()
        self._is_wanted.set()

    def stop(self, output: Working) -> None:
        """Something is done with this output: nobody else works on its tables."""
        if not self._outputs:
            return
        with self._lock:
            self._outputs.pop(id(output), None)
            self._asked = time.monotonic()
            if self._cancel is not None:
                self._cancel.cancel()

    def close(self) -> None:
        """Ends the thread."""
        with self._lock:
            self._is_closed = True
            self._outputs.clear()
            if self._cancel is not None:
                self._cancel.cancel()
        self._is_wanted.set()

    def _run(self) -> None:
        if self._stand_back is not None:
            self._stand_back()
        while True:
            is_wanted = self._is_wanted.wait(IDLE_SECONDS)
            pause = self._asked + PAUSE_SECONDS - time.monotonic()
            if pause > 0:
                time.sleep(pause)
                continue
            with self._lock:
                if not self._outputs:
                    self._is_wanted.clear()
                    if self._is_closed or not is_wanted:
                        self._has_thread = False
                        return
                    continue
                key, output = next(iter(self._outputs.items()))
                cancel = self._cancel = Cancel()
            n_masks = output.matcher.work_ahead(masks=self._masks, cancel=cancel)
            with self._lock:
                self._cancel = None
                self.n_masks += n_masks
                # Another output was asked for something, perhaps: this one goes on later.
                if not cancel.is_cancelled:
                    self._outputs.pop(key, None)
