"""Topics that nobody named: how well each method finds them, and how well it leaves their documents alone."""
