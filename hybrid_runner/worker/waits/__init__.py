"""Signals that jobs wait for: who is woken, and what an attempt is given."""
