"""What every room needs and none owns."""
