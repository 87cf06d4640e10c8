"""Generalised coordinates of choice: transfer, redundancy, load sharing, constraining (Freeman, chapters III, IV)."""
