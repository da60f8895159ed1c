"""What a runner says about itself: log lines and trace context."""
