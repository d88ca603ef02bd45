"""Networks whose packages do not fit into our environment, as files for `program(FILE)`."""
