"""A first look at models and data: settings are proposed, a few samples scanned, then more."""
