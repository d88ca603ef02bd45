"""Research around READ-Bench that is no part of the wheel: how Sonde is trained, and speed against peers."""
