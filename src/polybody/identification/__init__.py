"""What can be seen of a mechanism's parameters, motions that show it, and estimates from measured data."""
