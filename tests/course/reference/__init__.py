"""The reference is right: values, gradients, errors and what happens at the edges."""
