"""The heartbeat and what it brings: how a worker shows that it lives, and what it does for dead
ones.
"""
