"""Study of embeddings: the package against simple rivals with the same vectors."""
