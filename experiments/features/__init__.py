"""What each tool accepts and keeps, tried with the packages themselves."""
