"""Spans: one trace per job, over all its attempts and workers."""
