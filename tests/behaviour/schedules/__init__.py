"""Many schedules every second, and many worker processes of which none leads: `python -m
tests.behaviour.schedules`.
"""
