"""Audits of web sites: a form inserts rows with the status `pending`, and that is all it does. The
table was attached, and workers do what it says.

    table.sql    the application's table, with row-level security
    form.py      what the site does: plain SQL on its own table
    app.py       the handler, and how the table is attached
    site.py      web sites to play with
    __main__.py  all of it in one process: make example-audits
"""
