"""Closed loops: constraints, assembly, mobility and dynamics of mechanisms whose tree alone does not say all."""
