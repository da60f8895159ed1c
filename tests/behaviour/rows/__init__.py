"""An application that knows only its own table, whose rows are worked on: random statements by
plain SQL, and then the question whether each row shows what became of it.

Who does what:
    table.py        the application's table, what its own trigger notes, and how it is attached
    handlers.py     the handlers; each run writes down which row it saw
    application.py  what its clients do, by chance from a seed
    records.py      what was seen and noted, as values
    laws.py         what holds whatever happened

Both `make chaos` and the random operations have one.
"""
