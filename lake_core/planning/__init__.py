"""What the agents decide: pure functions from states, policies and a time to plans."""
