"""Work at a time, again and again: making schedules, looking at them, running one now."""
