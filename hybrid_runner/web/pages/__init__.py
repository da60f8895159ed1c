"""The pages: health, readiness, metrics, scale, jobs."""
