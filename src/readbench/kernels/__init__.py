"""What the compiled code of several rooms shares: a vector type, memory laid out for it, and threads."""
