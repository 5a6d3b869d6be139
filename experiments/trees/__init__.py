"""Topic trees: what labels above the leaves are worth."""
