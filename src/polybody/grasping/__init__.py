"""Arms that hold a common object (Swain & Morris 2003, sections 5.4 to 9), as models with loops."""
