"""Compiled inner loops; a module here is imported where it is first used, because importing it may compile."""
