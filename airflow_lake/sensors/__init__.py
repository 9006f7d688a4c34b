"""The sensors of the provider, which wait until a lake is in some state."""
