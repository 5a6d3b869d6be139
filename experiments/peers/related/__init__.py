"""Related systems that the paper names, written from their equations: one module each."""
