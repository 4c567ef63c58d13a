"""CUDA C from loop kernels."""
