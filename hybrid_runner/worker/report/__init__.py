"""What a worker says about itself: log, status, changes."""
