"""TopicModel: fit, update, edit, save and load."""
