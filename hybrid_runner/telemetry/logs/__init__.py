"""Log lines: their format, the fields they carry, the passwords they must not."""
