"""Server-sent events about jobs: GET /jobs/{id}/events and GET /events.

    events.py       the two pages: a request becomes a `Reader`, whose events it writes out
    reader.py       one reader: its `Subscription`, the events that wait for it, why it ends
    job_stream.py   `JobStream`: all readers of a page server, and the loop that reads jobs for them
    changes.py      `ChangeListener`: hears which jobs have changed, and announces the readers
    new_jobs.py     `NewJobs`: finds jobs that were inserted a moment ago
    event_names.py  the name of an event, from two snapshots of a job

How a change of a job reaches a reader:

    workers: claims, settles, rescues; SQL functions: retry, cancel, amend
          │ NOTIFY ~changes~… with ids, while readers are announced
          ▼
    ChangeListener                   NewJobs: ids behind the newest one of 2 s ago
          │ ids                            │ ids
          ▼                                ▼
    JobStream: a round reads snapshots of these jobs, compares them with the last ones ──▶ Reader

- A NOTIFY only says where to look. What readers are sent was read from the database, in the order
  of the reads, so a lost or forged message changes nothing but the delay.
- Changes are published only while readers are announced: `announce_readers` stores until when
  somebody reads, and notifies workers of it on ~readers. Each announcement is good for 6 s and is
  renewed every 2 s; after a page server has died nothing is published any more.
- While changes cannot be heard (a pooler, a lost connection) and in the first second after readers
  were announced, all watched jobs are read every POLL seconds; otherwise every RECHECK seconds, for
  what nobody published, such as an UPDATE by hand.
- Inserts publish nothing: transactions would wait for each other. Readers of many jobs get new ones
  from `NewJobs`, readers of one job do not need them.
- Everything is bounded: readers, jobs of one round, new jobs, events that wait for a reader. What
  has no room is counted and sent as `skipped`; a reader that does not read is sent away.
- A reader of one job sees each version of it once, and in order. Its first event is the job's state
  at the time of the request; then it may miss intermediate versions, never the end.
- Without readers there is no connection, no task and no timer.
- When the database is away readers are told (`away`, then `back`), and all is read anew.
"""
