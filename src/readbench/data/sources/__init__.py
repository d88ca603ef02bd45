"""Real data sources, one module each; importing this room registers all of them."""
