"""Decisions about waiting, as functions of values: time and chance are arguments."""
