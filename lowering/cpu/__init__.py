"""C from loop kernels."""
