"""What the holder of the duty `sources` does all the time for rows of attached tables."""
