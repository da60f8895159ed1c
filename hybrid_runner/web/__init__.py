"""HTTP pages of a worker: its health and metrics, its jobs, and a stream of their events."""
