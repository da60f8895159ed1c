"""Forty services of a shop that flap, lie, hang and answer in odd shapes, and what monitors make of
them.

    services.py     the services, as the shop's own table of them says
    application.py  what the shop does: plain SQL on that table
    app.py          the monitors, and who is told of a change
    view.py         all of it on a terminal
    fake/           the services to play with
    __main__.py     all of it in one process: make example-monitors
"""
