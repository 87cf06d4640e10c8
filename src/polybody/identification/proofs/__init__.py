"""Proofs of identities of motion, without rounding."""
