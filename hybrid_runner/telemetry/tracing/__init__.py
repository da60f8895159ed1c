"""Spans: one trace per job, over all its attempts and workers.

trace_ids.py     which trace a job belongs to, computed from its row
sampling.py      which jobs are traced
publish_span.py  the span around enqueueing
tracing.py       `Tracing`, the interface for the worker, as it is without a tracer provider
span_tracing.py  `SpanTracing`, its implementation with one: records the spans of sampled jobs
job_spans.py     the spans that say what has happened to a job: all of it, and its delays
spans.py         spans of our own, cheaper than the SDK's
current.py       the current trace while a handler of an unsampled job runs
span_queue.py    `SpanQueue`: spans wait here for the thread that sends them
delivery.py      sends one batch to one exporter
encoding.py      our own spans as bytes of OTLP
export.py        sets all this up as the OTEL_* variables say
"""
