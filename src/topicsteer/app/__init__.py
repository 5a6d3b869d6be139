"""The workbench: label, fit, read and correct in the browser; ``topicsteer label articles.csv`` starts it."""
