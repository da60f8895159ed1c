-- newest_event: the id of the newest event; 0: there is none.
SELECT n.last AS id FROM hybrid_monitors.event_numbers AS n
