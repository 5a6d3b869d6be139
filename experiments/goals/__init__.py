"""Is the precision that `predict --precision` promises reached?"""
