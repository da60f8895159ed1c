"""Existing tables of an application as sources of jobs."""
