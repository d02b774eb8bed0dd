"""Coverage-guided search for bytes that a reader neither reads nor refuses in words: `make fuzz`."""
