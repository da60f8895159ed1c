"""What workers do for each other: putting back what dead ones ran, and the duties that heartbeats
give out.
"""
