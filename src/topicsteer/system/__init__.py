"""The machine: files, threads, text that is safe to show. Imports nothing else of ours."""
