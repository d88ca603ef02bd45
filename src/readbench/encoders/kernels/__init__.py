"""Compiled loops of the encoders."""
