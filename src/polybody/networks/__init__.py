"""Networks that move: parts of any energy domain, models among them, from their graph to a trajectory.

The graph theory is `formulations.network`'s (Tokad). A network's equations come from `assembly`, are reduced to index
one by `structure`, solved block by block by `reduction`, compiled by `system`, taken through modes by `motion`, and
integrated by `running`.
"""
