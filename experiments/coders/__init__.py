"""Language models as coders: their counts, and shares that random labels correct."""
