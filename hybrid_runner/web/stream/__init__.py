"""Server-sent events about jobs."""
