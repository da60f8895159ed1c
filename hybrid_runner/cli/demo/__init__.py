"""The demo: app.py is what a user would write, producer.py is somebody else's program, the rest
shows what happens.
"""
