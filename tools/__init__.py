"""Programs for people who change this repository."""
