"""What the receiving side does: host a federation, write and read the final file, look into received files."""
