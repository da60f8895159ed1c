"""A fleet polls fake services while its members are killed; then everything that the services saw
is compared with everything that was stored.

    plan.py     which services there are, and what each plays
    app.py      the application that the members run
    fleet.py    the members, and their deaths
    fakes.py    the services, in a process of their own
    records.py  what was stored
    laws.py     what must be so
    mix.py      all of it together
    restart.py  everything stops, and starts again
"""
