"""The pages that a worker serves about itself."""
