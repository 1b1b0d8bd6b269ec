"""Networks that only the studies use, one module a family."""
