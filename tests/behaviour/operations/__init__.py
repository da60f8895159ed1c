"""Random operations of many clients at once, in transactions that stay open or are rolled back,
beside handlers that end in every way; then the question whether every promise was kept.

Who does what:
    mix.py      starts workers and clients, waits until the work is done, asks the laws
    clients.py  what a client does, by chance from a seed, and what it was answered
    app.py      the handlers; each run writes down its claim
    records.py  what was answered, and what is in the tables in the end, as values
    laws.py     what holds whatever happened
"""
