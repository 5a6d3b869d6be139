"""Code that several studies use: corpora, methods, scores, figures, storage and workers."""
