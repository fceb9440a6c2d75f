"""Annealing with resampling: sequential Monte Carlo, its pilot runs, and ln Z along the training of a model."""
