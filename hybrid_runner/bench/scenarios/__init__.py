"""The scenarios in the order in which they are run; each is a module with
`measure(database, sizes, tell)`.
"""

SCENARIOS = {
    "pickup": "from INSERT to handler, when nothing else happens",
    "paced": "from INSERT to handler, and the processor it costs, at a steady rate",
    "trickle": "looks and lateness of jobs that come due one by one, as those do that snooze",
    "waiting": "what 10,000 jobs cost that wait for something outside, and look now and then",
    "monitors": "what it costs to poll 10,000 services, by a job per host or one per service",
    "killed": "from INSERT to handler while sessions of the worker are ended by the server",
    "drain": "how fast one worker empties a full queue",
    "tracing": "what recording jobs as spans costs a worker that empties a full queue",
    "attached": "how fast one worker does the work of an application's own rows",
    "triggers": "what an application's statements cost on a table that is attached",
    "held": "what becomes of a worker while an application has some of its rows open",
    "producers": "how many single-row INSERTs a second many clients can do",
    "horizon": "how fast a worker stays while a transaction keeps vacuum from cleaning up",
    "backlog": "from INSERT to handler of an urgent job, before many others",
    "beat": "what a heartbeat costs beside many jobs that are due or were claimed",
    "idle": "what a worker costs that has nothing to do",
    "bulk": "how fast enqueue_many stores jobs",
    "memory": "what running jobs hold in memory",
    "forged": "from INSERT to handler while somebody sends forged notifications",
    "fleet": "how many workers look because of one INSERT",
}
"""Name of each scenario, and what it measures."""
