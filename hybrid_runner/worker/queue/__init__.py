"""What one worker does for one queue: when to look, and what it finds."""
