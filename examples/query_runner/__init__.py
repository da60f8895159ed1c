"""Queries of a warehouse that take minutes, started from a page and shown live: no slot is held
while they run, and each is cleaned up after however it ends.

    app.py        the jobs: start, look again and again, clean up; the reconcilers
    warehouse.py  the outside system, as the jobs see it
    runs.py       the application's own table
    page.py       the page: start, watch, cancel
    fake/         a warehouse to play with
    __main__.py   all of it in one process: make example-query-runner
"""
