"""Values that travel between the parts: jobs, claims, outcomes, messages, events."""
