"""Log lines: their format, what they carry, what they must not."""
