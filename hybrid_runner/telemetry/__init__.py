"""What a runner shows of itself: log lines, traces and metrics."""
