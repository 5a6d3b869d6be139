"""Checks against other people's packages, the real ones; `make interop` installs and runs them."""
