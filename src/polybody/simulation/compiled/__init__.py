"""Runs by compiled code: the field of a problem traced once, whole stretches of steps in one call of machine code."""
