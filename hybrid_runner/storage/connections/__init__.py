"""Connections to Postgres: how they are opened, kept and given up."""
