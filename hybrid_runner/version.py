"""The version, from the installed distribution."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("hybrid-runner")
except PackageNotFoundError:  # run from a checkout that was not installed
    VERSION = "0+unknown"
