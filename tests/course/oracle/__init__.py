"""The reference beside PyTorch, and beside central differences of random programs."""
