"""A compile service for servers: constraints of requests, compiled once, within bounds of memory and time.

>>> import anygram
>>> from anygram.serving import CompileService
>>> service = CompileService(anygram.Vocabulary.builtin())
>>> compiled = service.get("choice", '["yes", "no"]')
>>> service.get("choice", '["yes", "no"]').constraint is compiled.constraint
True
>>> service.stats["compiled"], service.stats["hits"]
(1, 1)

The adapters for vLLM, SGLang and Outlines have one inside. No engine is imported here, nor torch.
"""

from __future__ import annotations

import copy
import json
import os
import re
import sys
import tempfile
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Literal, NamedTuple, cast

from anygram import _likely
from anygram._ahead import WorkAhead
from anygram._errors import AnygramError, Cancelled, GrammarError, LimitError, RefusedError
from anygram._metrics import Histogram, Metrics
from anygram._native import Cancel, Compiler, Constraint, Language, MaskTimes, TablesBound, Vocabulary
from anygram._stops import check_stops

__all__ = ["Compilation", "CompileService", "Compiled"]

DEFAULTS: Mapping[str, Any] = {"key_order": "schema", "whitespace": {"at_most": 1}}
"""Options of the compiler in servers: what models write of themselves, and no way to fill an output up."""

OPTIONS_KEY = "x-anygram"
"""The key of a schema with options for this request."""

COMPILER_OPTIONS = frozenset({"key_order", "whitespace", "formats", "escapes", "extra_keys"})
"""The options of `Compiler` that a request may set: those that change what is allowed, not what it costs."""

REQUEST_OPTIONS = COMPILER_OPTIONS | {
    "avoid_stop",
    "close",
    "compile_seconds",
    "error_texts",
    "limits",
    "max_tokens",
}
"""All options of a request."""

FORMATS: Mapping[str, str] = {
    "json": "json-schema",
    "json_object": "json-schema",
    "regex": "regex",
    "choice": "lark",
    "grammar": "lark",
    "structural_tag": "structural-tag",
}
"""What requests ask for, and the format that the compiler takes for it. A grammar may also be in EBNF."""

SERVER_OPTIONS: Mapping[str, str] = {
    "cache_entries": "max_entries",
    "cache_bytes": "max_bytes",
    "max_waiting": "max_waiting",
    "max_source_bytes": "max_source_bytes",
    "compile_seconds": "seconds",
    "compile_threads": "threads",
    "error_texts": "error_texts",
    "metrics_file": "metrics_file",
    "prepared_masks": "prepared_masks",
    "work_ahead": "work_ahead",
}
"""What the configuration of an engine calls the options of the service."""

POLL_SECONDS = 0.02
"""How often a request that waits asks whether it was aborted."""

SLACK = 4
"""So large a part of the bound, one quarter, is left free: languages grow a little with masks, and are looked
at now and then. Tables are within the rest at any time."""

MASKS_A_LOOK = 2
"""Languages are looked at, at the latest, when so many masks were computed for each of them: by these they
grow."""

FOR_TABLES = 2
"""So large a part of the bound is for tables at least, one half: without them each mask is computed, which
takes longer than to compile a schema that was forgotten."""

_RULE_OF_EBNF = re.compile(r"^[ \t]*[\w.-]+[ \t]*::=", re.MULTILINE)

_BEGINS_AS_NLTK = re.compile(r"(?:[ \t]*(?:#[^\n]*|%start[^\n]*)?\r?\n)*[ \t]*[\w/^<>-]+[ \t]*->")
"""A production. A text in Lark's notation begins with a rule, a terminal or a directive."""


class Compiled(NamedTuple):
    """What a request gets."""

    constraint: Constraint
    """Shared by all requests that asked for the same."""
    asked: Mapping[str, Any]
    """The options that the request's own schema has and the compiler does not take: `max_tokens`, `close`,
    `error_texts`."""


class Compilation(Future[Compiled]):
    """A request that waits. `cancel` stops the compilation, unless another request waits for the same."""

    def __init__(self, leave: Callable[[Compilation], None]) -> None:
        super().__init__()
        self._leave = leave
        self.deadline: float | None = None

    def cancel(self) -> bool:
        """Gives the request up. `False` if it is done."""
        cancelled = super().cancel()
        if cancelled:
            self._leave(self)
        return cancelled


class _Work:
    """A compilation and who waits for it."""

    __slots__ = ("cancel", "key", "waiting")

    def __init__(self, key: _Key) -> None:
        self.key = key
        self.cancel = Cancel()
        self.waiting: set[Compilation] = set()


class _Known:
    """What came of a compilation: a constraint with the options of requests, or an error."""

    __slots__ = ("bytes", "compiled", "error")

    def __init__(self, compiled: Compiled | None, error: AnygramError | None, n_bytes: int) -> None:
        self.compiled = compiled
        self.error = error
        self.bytes = n_bytes


_Key = tuple[str, str, str, str]
"""Kind and text of what is asked for, the options as JSON, the vocabulary's fingerprint."""


class CompileService:
    """Constraints of requests, each compiled once.

    - Equal requests that come while one compiles wait for it. The key is the text, the options, and the
      fingerprint of the vocabulary.
    - Grammars with errors are remembered. Reached limits, deadlines and cancelled compilations are not.
    - A request that is aborted, or whose deadline comes, stops its compilation, unless another waits for it.
    - Within `max_bytes` the least recently used give up first their tables and then their place. Requests
      that use them go on with the same masks.
    - Before a request gets its constraint, masks are computed along texts that its outputs are likely to look
      like, so that the first steps look them up. That changes no mask.
    - `stats` and `prometheus()` say what happened. Errors show nothing of grammars, unless asked.

    All methods may be called on any thread, and after a fork.

    Args:
        vocabulary: the tokens of the model.
        options: of `Compiler`, over the defaults of servers: keys in the order of the schema, at most one
            blank between parts.
        max_entries: how many constraints and errors are kept.
        max_bytes: how many bytes they may have together, with their tables and sources. The one that came
            last is kept in any case. The vocabulary is not counted.
        max_waiting: how many requests may wait at once.
        max_source_bytes: the longest text of a request.
        seconds: how long a request waits, by default; `None` is without end.
        threads: how many compile at once, by default one for each two cores.
        error_texts: whether errors show parts of grammars and outputs.
        prepared_masks: the most masks that are computed with each grammar; with 0 none are, the vocabulary is
            not prepared for JSON schemas (`Vocabulary.prepare`) either, and the first
            steps of outputs compute them.
        work_ahead: the most masks that are computed ahead for an output while the model computes, on a thread
            of a low priority; with 0 none are. Of use where grammars are new and a core has time for it.
        metrics_file: a file to which the statistics are written every ten seconds while requests come, in
            Prometheus' text format.

    Raises:
        AnygramError: an option has no such value.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        options: Mapping[str, Any] | None = None,
        *,
        max_entries: int = 512,
        max_bytes: int = 1 << 30,
        max_waiting: int = 4096,
        max_source_bytes: int = 4 << 20,
        seconds: float | None = None,
        threads: int | None = None,
        error_texts: bool = False,
        prepared_masks: int = 512,
        work_ahead: int = 0,
        metrics_file: str | os.PathLike[str] | None = None,
    ) -> None:
        bounds: dict[str, Any] = {
            "max_entries": max_entries,
            "max_bytes": max_bytes,
            "max_waiting": max_waiting,
            "max_source_bytes": max_source_bytes,
            "threads": threads or 0,
            "prepared_masks": prepared_masks,
            "work_ahead": work_ahead,
        }
        for name, bound in bounds.items():
            if type(bound) is not int or bound < 0:
                raise AnygramError(f"{name} is {bound!r}; give a number from 0 on")
        check_seconds(seconds)
        if type(error_texts) is not bool:
            raise AnygramError(f"error_texts is {error_texts!r}; it is true or false")
        self.vocabulary = vocabulary
        self.options: dict[str, Any] = {**DEFAULTS, **(options or {})}
        # Wrong options are an error of the server when it starts, not of its requests.
        _compiler(self.options)
        if prepared_masks:
            vocabulary.prepare()
        self.max_entries, self.max_bytes = max_entries, max_bytes
        self.max_waiting, self.max_source_bytes = max_waiting, max_source_bytes
        self.seconds = seconds
        self.error_texts = error_texts
        self.prepared_masks = prepared_masks
        self.mask_times = MaskTimes()
        self.ahead = WorkAhead(self.mask_times, work_ahead, _stand_back) if work_ahead else None
        """What computes masks ahead, for `Output`."""
        self._threads = threads or max(1, (os.cpu_count() or 1) // 2)
        self._metrics_file = metrics_file
        self._fingerprint = vocabulary.fingerprint
        self._lock = threading.Lock()
        self._known: OrderedDict[_Key, _Known] = OrderedDict()
        self._at_work: dict[_Key, _Work] = {}
        self._n_waiting = 0
        self._leaving: list[weakref.ref[Constraint]] = []
        self._n = dict.fromkeys(_COUNTED, 0)
        self._compile_times = Histogram()
        self._executor: tuple[int, ThreadPoolExecutor] | None = None
        self._watches = False
        # Masks that were computed before the last look.
        self._n_looked_at = 0
        self._tables = TablesBound(max_bytes - max_bytes // SLACK)
        # Bytes of languages and sources as of the last look at all of them, and what came since.
        self._bytes = 0
        self._swept = self._written = 0.0
        self._sweeping = threading.Lock()
        self._sweeps = False
        self._is_closed = False
        _services.add(self)

    def get(
        self,
        kind: str,
        source: str,
        options: Mapping[str, Any] | None = None,
        *,
        vocabulary: Vocabulary | None = None,
        seconds: float | None = None,
        is_aborted: Callable[[], bool] | None = None,
    ) -> Compiled:
        """The constraint of a request; waits for it.

        Args:
            kind: `json`, `json_object`, `regex`, `grammar` (Lark's notation or EBNF), or `choice` (a JSON
                array of strings).
            source: the text.
            options: of `Compiler` for this request, over those of the service.
            vocabulary: the tokens, by default those of the service.
            seconds: how long it waits, instead of the time of the service.
            is_aborted: asked every 20 ms while it waits: whether nobody wants the answer any more.

        Raises:
            GrammarError: the source has an error.
            LimitError: it needs more than the limits allow; `compile_seconds` is the time.
            Cancelled: it was aborted, or the service was closed.
            AnygramError: it is of a kind, or has options, that are not supported.
        """
        if options is None and vocabulary is None:
            # What is known takes a look-up, and no object.
            with self._lock:
                key = (kind, source, "", self._fingerprint)
                known = self._known.get(key)
                if known is not None and known.compiled is not None:
                    self._known.move_to_end(key)
                    self._n["hits"] += 1
                    if not self._n["hits"] % 256:
                        self._sweep_soon()
                    return known.compiled
        waiting = self.submit(kind, source, options, vocabulary=vocabulary, seconds=seconds)
        try:
            while True:
                try:
                    return waiting.result(None if is_aborted is None else POLL_SECONDS)
                except FutureTimeout:
                    if waiting.done() or is_aborted is None:
                        continue
                if is_aborted():
                    raise Cancelled("the request was aborted while its grammar was compiled")
        finally:
            # Also where this thread is interrupted.
            waiting.cancel()

    def submit(
        self,
        kind: str,
        source: str,
        options: Mapping[str, Any] | None = None,
        *,
        vocabulary: Vocabulary | None = None,
        seconds: float | None = None,
    ) -> Compilation:
        """As `get`, without waiting: what it would return or raise is in the future."""
        waiting = Compilation(self._leave)
        try:
            self._begin(waiting, kind, source, options, vocabulary, seconds)
        except AnygramError as error:
            with self._lock:
                self._n["limits" if isinstance(error, LimitError) else "errors"] += 1
            waiting.set_exception(error)
        return waiting

    def close(self) -> None:
        """Cancels what compiles, and forgets everything. Requests that come later are `Cancelled`."""
        with self._lock:
            self._is_closed = True
            works = list(self._at_work.values())
            self._known.clear()
            executor = self._executor
        for work in works:
            work.cancel.cancel()
        if self.ahead is not None:
            self.ahead.close()
        if executor is not None and executor[0] == os.getpid():
            executor[1].shutdown(wait=False, cancel_futures=False)

    def tick(self) -> None:
        """Looks at the memory of languages, twice a second, and sooner where many masks are computed.
        Adapters call it each 64 masks; mostly it takes a microsecond."""
        self._sweep_soon()

    @property
    def stats(self) -> dict[str, int]:
        """How many requests compiled, found a constraint (`hits`) or an error, joined another request, were
        cancelled, reached their deadline or a limit; how many constraints and tables were given up; what is
        there now, and its bytes: `leaving` are those of languages that only requests use any more."""
        with self._lock:
            counted = dict(self._n)
            known = list(self._known.values())
            waiting, compiling = self._n_waiting, len(self._at_work)
            leaving = self._leaving_now()
        languages, tables = sum(map(_size, known)), self._tables.bytes
        counted["tables_evicted"] += self._tables.emptied
        return {
            **counted,
            "entries": len(known),
            "waiting": waiting,
            "compiling": compiling,
            "bytes": languages + tables + leaving,
            "language_bytes": languages,
            "tables_bytes": tables,
            "leaving_bytes": leaving,
            "masks_looked_up": self.mask_times.looked_up,
            "masks_computed": self.mask_times.computed,
            "masks_failed": self.mask_times.failed,
            "masks_ahead": 0 if self.ahead is None else self.ahead.n_masks,
        }

    def prometheus(self, labels: Mapping[str, str] | None = None) -> str:
        """The statistics in Prometheus' text format (version 0.0.4).

        >>> import anygram
        >>> service = CompileService(anygram.Vocabulary.builtin())
        >>> text = service.prometheus({"model": "tiny"})
        >>> print(text.splitlines()[2])
        anygram_requests_total{model="tiny",result="compiled"} 0

        Args:
            labels: of every sample, such as the name of the model.
        """
        stats, times = self.stats, self.mask_times
        with self._lock:
            compile_times = self._compile_times.copy()
        page = Metrics("anygram", labels)
        results = {name: stats[name] for name in _RESULTS}
        page.counter("requests", "Requests by what became of them.", results, "result")
        page.histogram("compile_seconds", "Time to compile a grammar.", compile_times)
        mask_times = Histogram(times.ends, times.counts, times.seconds)
        page.histogram("mask_seconds", "Time to look a mask up or to compute it.", mask_times)
        masks = {name: stats[f"masks_{name}"] for name in ("looked_up", "computed", "failed", "prepared", "ahead")}
        page.counter("masks", "Masks by how they were made.", masks, "made")
        given_up = {"tables": stats["tables_evicted"], "constraints": stats["evicted"]}
        page.counter("evictions", "What was given up to stay within the bounds.", given_up, "what")
        page.gauge("cache_entries", "Constraints and errors that are kept.", {"": stats["entries"]})
        parts = {part: stats[f"{part}_bytes"] for part in ("language", "tables", "leaving")}
        page.gauge("cache_bytes", "Memory of constraints.", parts, "part")
        page.gauge("cache_max_bytes", "The bound on it.", {"": self.max_bytes})
        page.gauge("waiting", "Requests that wait for a compilation.", {"": stats["waiting"]})
        page.gauge("compiling", "Compilations at work or queued.", {"": stats["compiling"]})
        return page.text()

    def error_of(self, error: AnygramError, *, texts: bool | None = None) -> AnygramError:
        """An error to show, by default without the text of grammars and outputs."""
        shows = self.error_texts if texts is None else texts
        return copy.copy(error).with_traceback(None) if shows else without_text(error)

    def _begin(
        self,
        waiting: Compilation,
        kind: str,
        source: str,
        options: Mapping[str, Any] | None,
        vocabulary: Vocabulary | None,
        seconds: float | None,
    ) -> None:
        """Answers a request that is known, or makes it wait."""
        check_seconds(seconds)
        n_bytes = len(source) if source.isascii() else len(source.encode(errors="replace"))
        if n_bytes > self.max_source_bytes:
            raise LimitError(
                f"the text of the request has more than {self.max_source_bytes} bytes",
                name="max_source_bytes",
                value=self.max_source_bytes,
            )
        given = json.dumps(options, sort_keys=True, default=str) if options else ""
        key = (kind, source, given, self._fingerprint if vocabulary is None else vocabulary.fingerprint)
        asked = {} if key in self._known else options_of(kind, source)
        limits = (seconds or self.seconds, asked.get("compile_seconds"))
        with self._lock:
            if self._is_closed:
                raise Cancelled("the compile service was closed")
            known = self._known.get(key)
            work = self._at_work.get(key)
            is_new = known is None and work is None
            if known is not None:
                self._known.move_to_end(key)
                self._n["hits" if known.error is None else "remembered"] += 1
            else:
                if self._n_waiting >= self.max_waiting:
                    raise LimitError(
                        f"{self._n_waiting} requests wait for compilations already",
                        name="max_waiting",
                        value=self.max_waiting,
                    )
                if work is None:
                    work = self._at_work[key] = _Work(key)
                self._n["compiled" if is_new else "joined"] += 1
                self._wait(work, waiting, min(filter(None, limits), default=None))
        if known is not None:
            _answer(waiting, known.compiled, copy.copy(known.error))
            self._sweep_soon()
        elif is_new and work is not None:
            tokens, begun = self.vocabulary if vocabulary is None else vocabulary, work
            self._run(lambda: self._work(begun, tokens, options or {}))

    def _wait(self, work: _Work, waiting: Compilation, seconds: float | None) -> None:
        """Lets a request wait, with the lock held."""
        work.waiting.add(waiting)
        self._n_waiting += 1
        if seconds is None:
            return
        waiting.deadline = time.monotonic() + seconds
        if not self._watches:
            self._watches = True
            threading.Thread(target=self._watch, name="anygram-deadlines", daemon=True).start()

    def _in_child(self) -> None:
        """After a fork: what the parent's threads do is not done here."""
        self._lock = threading.Lock()
        self._at_work.clear()
        self._n_waiting = 0
        self._watches = self._sweeps = False
        self._sweeping = threading.Lock()
        if self.ahead is not None:
            self.ahead.in_child()

    def _run(self, job: Callable[[], None]) -> None:
        process = os.getpid()
        with self._lock:
            if self._executor is None or self._executor[0] != process:
                # Threads do not survive a fork.
                made = ThreadPoolExecutor(
                    self._threads, thread_name_prefix="anygram-compile", initializer=_stand_back
                )
                self._executor = (process, made)
            executor = self._executor[1]
        try:
            executor.submit(job)
        except RuntimeError:
            # It was closed meanwhile: what waits is told so there.
            job()

    def _work(self, work: _Work, vocabulary: Vocabulary, options: Mapping[str, Any]) -> None:
        """Compiles, and tells all that wait."""
        kind, source = work.key[:2]
        began = time.perf_counter()
        compiled: Compiled | None = None
        error: AnygramError | None = None
        failure: BaseException | None = None
        try:
            if self._is_closed:
                work.cancel.cancel()
            language, asked = self._language(kind, source, options, work.cancel)
            constraint = Constraint(language, vocabulary, times=self.mask_times, bound=self._tables)
            self._prepare(constraint, kind, source, work.cancel)
            compiled = Compiled(constraint, asked)
        except AnygramError as raised:
            error = self.error_of(raised, texts=self._shows_texts(kind, source))
        except BaseException as raised:
            failure = raised
        took = time.perf_counter() - began
        known = _Known(compiled, error, sys.getsizeof(source))
        is_kept = compiled is not None or isinstance(error, GrammarError)
        if is_kept and (self._is_due() or self._is_full(_size(known))):
            # There is room for it before it comes.
            self._sweep(_size(known))
        with self._lock:
            self._compile_times.count(took)
            # Where nobody waited any more, others may have begun anew.
            if self._at_work.get(work.key) is work:
                del self._at_work[work.key]
            waiting = list(work.waiting)
            work.waiting.clear()
            self._n_waiting -= len(waiting)
            if isinstance(error, Cancelled):
                self._n["cancelled"] += len(waiting)
            elif isinstance(error, LimitError):
                self._n["limits"] += max(len(waiting), 1)
            elif compiled is None:
                self._n["errors"] += max(len(waiting), 1)
            if is_kept and not self._is_closed:
                self._known[work.key] = known
                self._bytes += _size(known)
                self._leave_to_tables(self._bytes)
        for one in waiting:
            _answer(one, compiled, copy.copy(error) if error is not None else failure)
        with self._lock:
            self._drop_oldest(max(self.max_entries, 1))
        if self._is_full(0):
            self._sweep()

    def _prepare(self, constraint: Constraint, kind: str, source: str, cancel: Cancel) -> None:
        """Computes masks that outputs are likely to need."""
        if self.prepared_masks == 0:
            return
        try:
            n_masks = constraint.prepare(
                _likely.texts(kind, source), masks=self.prepared_masks, cancel=cancel
            )
        except LimitError:
            # If an output comes there, its mask says so.
            return
        with self._lock:
            self._n["masks_prepared"] += n_masks

    def _shows_texts(self, kind: str, source: str) -> bool:
        try:
            return bool(options_of(kind, source).get("error_texts", self.error_texts))
        except AnygramError:
            return self.error_texts

    def _language(
        self, kind: str, source: str, options: Mapping[str, Any], cancel: Cancel
    ) -> tuple[Language, Mapping[str, Any]]:
        form = FORMATS.get(kind)
        if form is None:
            raise unsupported(kind)
        asked: dict[str, Any] = {}
        text: Any = source
        if kind == "json":
            text, asked = _schema(source)
        elif kind == "json_object":
            text = {"type": "object"}
        elif kind == "choice":
            text = _choice(source)
        elif kind == "grammar" and _RULE_OF_EBNF.search(source):
            form = "ebnf"
        elif kind == "grammar" and _BEGINS_AS_NLTK.match(source):
            form = "nltk"
        own = {name: asked.pop(name) for name in COMPILER_OPTIONS if name in asked}
        avoids: Any = asked.get("avoid_stop", False)
        if type(avoids) is not bool:
            own["avoid"] = check_stops(avoids)
        own.update(options)
        limits = asked.pop("limits", None)
        asked.pop("compile_seconds", None)
        made = {**self.options, **own}
        if limits is not None:
            made["limits"] = {**(made.get("limits") or {}), **_lower(_compiler(self.options).limits, limits)}
        return _compiler(made).compile(text, cast("Literal['lark']", form), cancel=cancel), asked

    def _leave(self, waiting: Compilation) -> None:
        """A request does not wait any more. The last one stops the compilation."""
        with self._lock:
            for work in self._at_work.values():
                if waiting in work.waiting:
                    break
            else:
                return
            work.waiting.discard(waiting)
            self._n_waiting -= 1
            self._n["cancelled"] += 1
            if work.waiting:
                return
            # Who comes now compiles anew: this one is about to stop.
            del self._at_work[work.key]
        work.cancel.cancel()

    def _watch(self) -> None:
        """Ends requests at their deadlines, as long as there are any."""
        while True:
            now = time.monotonic()
            expired: list[Compilation] = []
            stopped: list[_Work] = []
            with self._lock:
                soonest = None
                for work in list(self._at_work.values()):
                    for one in list(work.waiting):
                        if one.deadline is None:
                            continue
                        if one.deadline > now:
                            soonest = min(soonest or one.deadline, one.deadline)
                            continue
                        work.waiting.discard(one)
                        expired.append(one)
                    if not work.waiting:
                        del self._at_work[work.key]
                        stopped.append(work)
                self._n_waiting -= len(expired)
                self._n["deadlines"] += len(expired)
                if soonest is None:
                    self._watches = False
            for work in stopped:
                work.cancel.cancel()
            for one in expired:
                reason = "the grammar was not compiled in the time that the request has"
                _answer(one, None, LimitError(reason, name="compile_seconds"))
            if soonest is None:
                return
            time.sleep(min(POLL_SECONDS, max(soonest - now, 0.001)))

    def _target(self) -> int:
        return self.max_bytes - self.max_bytes // SLACK

    def _is_full(self, coming: int) -> bool:
        """Whether there is no room for so many bytes."""
        of_tables = max(self._tables.bytes, self.max_bytes // FOR_TABLES)
        return self._bytes + coming + of_tables > self._target()

    def _leave_to_tables(self, bytes: int) -> None:
        """Tables may have what languages leave."""
        most = max(self._target() - bytes, 0)
        if most != self._tables.most:
            self._tables.most = most

    def _is_due(self) -> bool:
        """Whether to look at all languages, which is done twice a second."""
        if self._is_closed:
            return False
        # A look asks each of them, so one comes for so many masks that it takes little beside them.
        n_masks = self.mask_times.computed - self._n_looked_at
        return time.monotonic() - self._swept > 0.5 or n_masks > MASKS_A_LOOK * len(self._known)

    def _sweep_soon(self) -> None:
        """Looks at the memory on a thread of the service, if it is time to."""
        if self._sweeps or not self._is_due():
            return
        self._sweeps = True
        # Not on this thread: it may hold the lock, and has masks to compute.
        threading.Thread(target=self._sweep, name="anygram-memory", daemon=True).start()

    def _sweep(self, coming: int = 0) -> None:
        """Gives tables up, then constraints, until what is kept is within the bounds, with some room, and
        with so many bytes that are about to come."""
        with self._sweeping:
            self._sweep_now(coming)

    def _sweep_now(self, coming: int) -> None:
        self._swept, self._n_looked_at = time.monotonic(), self.mask_times.computed
        target = self._target() - coming
        try:
            with self._lock:
                known = list(self._known.items())
                leaving, before = self._leaving_now(), self._bytes
            # Languages grow while masks are computed, so all are asked again.
            sizes: dict[_Key, int] = {}
            for n, (key, one) in enumerate(known):
                sizes[key] = _size(one)
                if n % 8 == 7:
                    # Others may have the interpreter's lock: they have masks to compute.
                    time.sleep(0)
            languages = leaving + sum(sizes.values())
            # What only saves work goes first, the longest unused tables before others.
            self._leave_to_tables(languages + coming)
            for _, one in known:
                if languages + self._tables.bytes <= target:
                    break
                constraint = one.compiled.constraint if one.compiled is not None else None
                if constraint is not None and constraint.tables_memory:
                    # Also the states of outputs that are gone. Who works on them may take long.
                    constraint.forget_tables(wait=False)
                    with self._lock:
                        self._n["tables_evicted"] += 1
            dropped: list[_Known] = []
            with self._lock:
                # With those that came meanwhile.
                self._bytes += languages - before
                for key, size in sizes.items():
                    is_last = len(self._known) == int(coming == 0)
                    if is_last or not self._is_full(coming):
                        break
                    if key in self._known:
                        dropped.append(self._drop(key))
                        self._bytes -= size
            # Large objects are freed without the lock.
            del dropped, known
            with self._lock:
                # What requests still use is not gone.
                self._bytes += max(self._leaving_now() - leaving, 0)
                self._leave_to_tables(self._bytes + coming)
            self._write()
        finally:
            self._sweeps = False

    def _drop_oldest(self, n_kept: int) -> None:
        while len(self._known) > n_kept:
            self._drop(next(iter(self._known)))

    def _drop(self, key: _Key) -> _Known:
        """Forgets one; what requests still use is counted on."""
        one = self._known.pop(key)
        self._n["evicted"] += 1
        if one.compiled is not None:
            self._leaving.append(weakref.ref(one.compiled.constraint))
        return one

    def _leaving_now(self) -> int:
        """Bytes of languages that are not kept any more, and that requests still use."""
        alive = [(one, constraint) for one in self._leaving if (constraint := one()) is not None]
        self._leaving = [one for one, _ in alive]
        return sum(constraint.language.memory_usage for _, constraint in alive)

    def _write(self) -> None:
        now = time.monotonic()
        if self._metrics_file is None or (self._written and now - self._written < 10):
            return
        self._written = now
        place = os.path.abspath(self._metrics_file)
        # Whoever reads it sees a whole page.
        with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(place), delete=False) as file:
            file.write(self.prometheus())
        os.chmod(file.name, 0o644)
        os.replace(file.name, place)


_services: weakref.WeakSet[CompileService] = weakref.WeakSet()


def _after_fork() -> None:
    """In a child nobody works, and a lock that another thread held is never released."""
    for service in list(_services):
        service._in_child()  # pyright: ignore[reportPrivateUsage]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

_RESULTS = ("compiled", "hits", "joined", "remembered", "errors", "limits", "cancelled", "deadlines")
_COUNTED = (*_RESULTS, "evicted", "tables_evicted", "masks_prepared")


def without_text(error: AnygramError) -> AnygramError:
    """The same error without the text of grammars, schemas and outputs: what is left are its kind, numbers,
    and the names of our limits."""
    hint = "; `error_texts` shows more"
    if isinstance(error, RefusedError):
        where = "" if error.offset is None else f" at byte {error.offset} of the output"
        end = ", which had ended" if error.has_ended else ""
        message = f"token {error.token} may not come next{where}{end}{hint}"
        return RefusedError(
            message,
            token=error.token,
            offset=error.offset,
            could_end=error.could_end,
            has_ended=error.has_ended,
        )
    if isinstance(error, LimitError):
        value = "" if error.value is None else f" ({error.value})"
        limit = "a limit of schemas" if error.name is None else f"the limit {error.name}{value}"
        return LimitError(f"{limit} was reached", name=error.name, value=error.value)
    if isinstance(error, GrammarError):
        place = "" if error.line is None else f" at line {error.line}, column {error.column}"
        message = f"the grammar or schema cannot be used ({error.kind}){place}{hint}"
        return GrammarError(message, kind=error.kind, line=error.line, column=error.column)
    return copy.copy(error).with_traceback(None)


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of a server: those of the compiler, and those of the service by its own names."""
    own = {name: options[option] for option, name in SERVER_OPTIONS.items() if option in options}
    return {name: value for name, value in options.items() if name not in SERVER_OPTIONS}, own


def unsupported(kind: str) -> AnygramError:
    """The refusal of a kind of request."""
    return AnygramError(f"Anygram does not constrain by {kind}", kind="unsupported")


def check_seconds(seconds: Any) -> None:
    """Fails unless it is a time or `None`."""
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if seconds is not None and not (is_number and seconds > 0):
        raise AnygramError(f"seconds is {seconds!r}; give a number above 0, or nothing")


def check_close(close: Any) -> None:
    """Fails unless it is one of the values of `close`."""
    if type(close) is not bool and not (type(close) is int and close >= 0):
        raise AnygramError(f"close is {close!r}; it is true, false, or a number of tokens")


def check_avoid(avoid: Any) -> None:
    """Fails unless it is one of the values of `avoid_stop`."""
    if type(avoid) is not bool:
        check_stops(avoid)


def _answer(waiting: Compilation, compiled: Compiled | None, error: BaseException | None) -> None:
    """Unless it was cancelled at this moment."""
    if not waiting.set_running_or_notify_cancel():
        return
    if compiled is not None:
        waiting.set_result(compiled)
    else:
        waiting.set_exception(error)


def _size(known: _Known) -> int:
    """Bytes of the language with its source."""
    if known.compiled is None:
        return known.bytes + 1024
    return known.bytes + known.compiled.constraint.language.memory_usage


def _stand_back() -> None:
    """Lets threads that compute masks go first, where threads have priorities of their own."""
    if sys.platform == "linux":
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        except OSError:
            pass


def _compiler(options: Mapping[str, Any]) -> Compiler:
    try:
        return Compiler(**options)
    except TypeError as error:
        raise AnygramError(f"options that the compiler does not take: {error}") from error


def _lower(limits: Mapping[str, int], asked: Any) -> dict[str, int]:
    """The limits of a request, which can only be lower than those of the server."""
    listed = cast("dict[str, Any]", asked) if isinstance(asked, dict) else {}
    if not isinstance(asked, dict) or not listed.keys() <= limits.keys():
        raise AnygramError(f"`limits` in `{OPTIONS_KEY}` is an object with {', '.join(sorted(limits))}")
    if any(type(value) is not int for value in listed.values()):
        raise AnygramError(f"`limits` in `{OPTIONS_KEY}` are numbers")
    return {name: min(value, limits[name]) for name, value in listed.items()}


def _schema(source: str) -> tuple[str, dict[str, Any]]:
    """A schema without the options of the request, and these."""
    if f'"{OPTIONS_KEY}"' not in source:
        return source, {}
    try:
        schema = json.loads(source)
    except (ValueError, RecursionError):
        # The compiler says where the error is.
        return source, {}
    if not isinstance(schema, dict) or OPTIONS_KEY not in schema:
        return source, {}
    rest = cast("dict[str, Any]", schema)
    options: Any = rest.pop(OPTIONS_KEY)
    if not isinstance(options, dict) or not cast("dict[str, Any]", options).keys() <= REQUEST_OPTIONS:
        raise AnygramError(
            f"`{OPTIONS_KEY}` of a schema is an object with {', '.join(sorted(REQUEST_OPTIONS))}"
        )
    asked = cast("dict[str, Any]", options)
    if "compile_seconds" in asked:
        check_seconds(asked["compile_seconds"])
    check_close(asked.get("close", True))
    check_avoid(asked.get("avoid_stop", True))
    if type(asked.get("error_texts", True)) is not bool:
        raise AnygramError(f"`error_texts` in `{OPTIONS_KEY}` is true or false")
    if "max_tokens" in asked and (type(asked["max_tokens"]) is not int or asked["max_tokens"] < 1):
        raise AnygramError(f"`max_tokens` in `{OPTIONS_KEY}` is a number from 1 on")
    return json.dumps(rest, ensure_ascii=False), asked


def options_of(kind: str, source: str) -> dict[str, Any]:
    """The options that a request has in its text.

    Raises:
        AnygramError: they are no such options.
    """
    return _schema(source)[1] if kind == "json" and OPTIONS_KEY in source else {}


def _choice(source: str) -> str:
    """The grammar of a JSON array of texts."""
    try:
        texts: Any = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"choices are a JSON array of strings: {error}") from error
    listed = cast("list[Any]", texts) if isinstance(texts, list) else []
    if not listed or not all(isinstance(text, str) for text in listed):
        raise GrammarError("choices are a JSON array of at least one string")
    different: dict[str, None] = dict.fromkeys(listed)
    return "%lexer scannerless\nstart: " + "\n  | ".join(map(_literal, different))


def _literal(text: str) -> str:
    def escaped(char: str) -> str:
        if char in '"\\':
            return "\\" + char
        return char if char.isprintable() else f"\\U{ord(char):08x}"

    return '"' + "".join(map(escaped, text)) + '"'
