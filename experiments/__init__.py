"""Studies on real data, one folder per study."""
