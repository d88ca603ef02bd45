"""Compiled code, for CPU and CUDA; a module is imported where it is first used, because importing it may compile."""
