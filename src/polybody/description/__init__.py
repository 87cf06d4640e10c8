"""What a person or a file says: records, readers, writers, checks."""
