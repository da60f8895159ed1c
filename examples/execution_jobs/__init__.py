"""Recorded browser tests, run for each row of a CSV file. The application has its own table of
executions and knows nothing of jobs; that table was attached, and workers do what it says.

    tables.sql      the application's tables, with triggers and row-level security of its own
    application.py  what the application does: plain SQL on its own tables
    page.py         its page
    app.py          the handler, and how the table is attached
    browser.py      a browser to play with
    __main__.py     all of it in one process: make example-execution-jobs
"""
