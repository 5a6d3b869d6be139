"""Topics, and what is known of documents."""
