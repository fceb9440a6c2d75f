"""Annealing with resampling: sequential Monte Carlo and its pilot runs."""
