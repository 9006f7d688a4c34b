"""Measures pieces of work: seconds by phase, for the meter of the store, and a span of OpenTelemetry.

    with measured(store, "load", pool="logs") as work:
        for block in work.each("read", blocks):         seconds of the iterator, not of the loop
            with work.phase("sort"): ...

A span begins only if the process has a tracer, and metrics are offered only if it has imported OpenTelemetry's
interface: a program that sets a provider imports it first.  So this module imports it only then, and a command
without it pays neither the import nor the calls (decision 395).  Nothing here sends anything: the provider of the
process does, by its own settings; in Airflow these are Airflow's.

A span has names of pools and branches.  It has the class of an error, but not the text, which may name keys.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from lake_core.store.meter import PROCESS, Counts, Meter, meter_of

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.trace import Span, Tracer

T = TypeVar("T")

SCOPE = "log_lake"
"""The name of the tracer and of the meter, and the beginning of all names of spans, attributes and metrics."""


class Timing:
    """A context whose seconds are added to a phase of work."""

    __slots__ = ("_begun", "_meter", "_phase")

    def __init__(self, meter: Meter, phase: str) -> None:
        self._meter, self._phase = meter, phase

    def __enter__(self) -> None:
        self._begun = time.perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._meter.took(self._phase, time.perf_counter() - self._begun)


def timed(store: object, phase: str) -> Timing:
    """Returns a context whose seconds are added to a phase, such as `scan.plan`, in the meter of the store."""
    return Timing(meter_of(store), phase)


class Measured:
    """A piece of work that is being measured; its phases are named `work.phase`."""

    __slots__ = ("_meter", "_span", "_work")

    def __init__(self, meter: Meter, work: str, span: Span | None) -> None:
        self._meter, self._work, self._span = meter, work, span

    def __enter__(self) -> Measured:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def phase(self, name: str) -> Timing:
        """Returns a context that is measured as a phase of the work."""
        return Timing(self._meter, f"{self._work}.{name}")

    def each(self, name: str, items: Iterable[T]) -> Iterator[T]:
        """Yields the items.  Making them counts as a phase of the work; what the caller does between two items
        does not."""
        iterator, phase, end = iter(items), self.phase(name), object()
        while True:
            with phase:
                item = next(iterator, end)
            if item is end:
                return
            yield item  # type: ignore[misc]  # only the end is of another class

    def note(self, **figures: int) -> None:
        """Adds figures of the result to the span."""
        if self._span is not None:
            self._span.set_attributes({f"{SCOPE}.{name}": figure for name, figure in figures.items()})


def measured(
    store: object, work: str, *, aside: bool = False, **about: str
) -> AbstractContextManager[Measured]:
    """Measures the block as a piece of work; `about` are attributes of its span, such as the pool.

    `aside`: the block may be left and entered again, as in a generator, so its span never has child spans.
    """
    tracer, meter = _tracer(), meter_of(store)
    if tracer is None:
        return Measured(meter, work, None)
    return _spanned(tracer, meter, work, aside, about)


@contextmanager
def _spanned(
    tracer: Tracer, meter: Meter, work: str, aside: bool, about: Mapping[str, str]
) -> Iterator[Measured]:
    from opentelemetry.trace import StatusCode, use_span

    span = tracer.start_span(
        f"{SCOPE}.{work}", attributes={f"{SCOPE}.{name}": text for name, text in about.items() if text}
    )
    try:
        if aside:
            yield Measured(meter, work, span)
        else:
            with use_span(span, record_exception=False, set_status_on_exception=False):
                yield Measured(meter, work, span)
    except Exception as error:
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(StatusCode.ERROR)
        raise
    finally:
        span.end()


def _tracer() -> Tracer | None:
    """Returns the tracer of the process; None if no provider is set."""
    if "opentelemetry.metrics" in sys.modules:
        offer_metrics()
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    return None if isinstance(provider, trace.ProxyTracerProvider) else provider.get_tracer(SCOPE)


_OFFERED: list[bool] = []


def offer_metrics() -> None:
    """Offers the totals of the process as metrics of OpenTelemetry, once; they are read whenever a reader asks.

    A provider that is set later gets them, too.
    """
    if _OFFERED:
        return
    _OFFERED.append(True)
    from opentelemetry import metrics

    meter = metrics.get_meter(SCOPE)
    for name, unit, says, values in METRICS:
        meter.create_observable_counter(f"{SCOPE}.{name}", [_callback(values)], unit=unit, description=says)


def _callback(values: MetricValues) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observe(_: CallbackOptions) -> Iterable[Observation]:
        from opentelemetry.metrics import Observation

        return [Observation(number, labels) for labels, number in values(PROCESS.counts())]

    return observe


MetricLabels = dict[str, str]
MetricValues = Callable[[Counts], Iterable[tuple[MetricLabels, float]]]


def _requests(counts: Counts) -> Iterator[tuple[MetricLabels, float]]:
    for kind in ("reads", "lists", "writes", "deletes"):
        yield {"kind": kind.removesuffix("s")}, getattr(counts, kind)


def _seconds(counts: Counts) -> Iterator[tuple[MetricLabels, float]]:
    for name, seconds in sorted(counts.seconds.items()):
        work, _, phase = name.partition(".")
        yield {"work": work, "phase": phase}, seconds


METRICS: tuple[tuple[str, str, str, MetricValues], ...] = (
    ("store.requests", "{request}", "Requests to stores", _requests),
    (
        "store.bytes",
        "By",
        "Bytes from and to stores",
        lambda c: [({"direction": "received"}, c.received), ({"direction": "sent"}, c.sent)],
    ),
    ("commits", "{commit}", "Transactions that this process committed to pools", lambda c: [({}, c.commits)]),
    (
        "races_lost",
        "{race}",
        "Races for the next entry of a journal that this process lost",
        lambda c: [({}, c.races_lost)],
    ),
    ("phase.seconds", "s", "Seconds by phase of loads, scans and rewritings", _seconds),
)
"""Name, unit, description and values of each metric of a process, here and on `lake serve`."""
