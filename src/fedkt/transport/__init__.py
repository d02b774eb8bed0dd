"""Moving bytes; a transport does not know what a bundle is."""
