"""What workers do for each other: rescuing the jobs of dead ones, and the duties that heartbeats
hand out.
"""
