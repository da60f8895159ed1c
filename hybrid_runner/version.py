"""The version, from the installed distribution."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("hybrid-runner")
except PackageNotFoundError:  # a checkout that is not installed
    VERSION = "0+unknown"
