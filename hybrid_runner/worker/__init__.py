"""One worker: listener, timer and poller wake the claimer; the claimer looks for jobs; the executor
runs them; the settler writes their outcomes.
"""
