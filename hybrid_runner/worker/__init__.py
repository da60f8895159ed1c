"""One worker: listener, timers and poller raise a wake; the claimer looks; the executor runs; the
settler writes it down.
"""
