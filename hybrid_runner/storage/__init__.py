"""The only package that talks to Postgres: connections, statements by name, migrations, errors
translated.
"""
