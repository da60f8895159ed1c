-- forget_leftovers: remove what is left of services that are gone; how many rows.
SELECT hybrid_monitors.forget_leftovers() AS forgotten
