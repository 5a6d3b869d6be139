"""Files, threads, memory and safe text; imports no other part of topicsteer."""
