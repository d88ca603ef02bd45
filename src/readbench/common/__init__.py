"""What every room may use: nothing here knows of benchmark or cases."""
