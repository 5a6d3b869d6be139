"""Checks with the real packages of other projects; `make interop` installs and runs them."""
