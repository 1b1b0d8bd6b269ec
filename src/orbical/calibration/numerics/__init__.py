"""Numerical parts of the measures: sorted sums, equal-mass bins, gradients, GPU kernels."""
