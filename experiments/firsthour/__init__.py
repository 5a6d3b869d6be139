"""The first hour: names and keywords before any label."""
