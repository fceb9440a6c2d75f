"""Parallel tempering: chains on a ladder of temperatures, their estimate of ln Z by Bennett's ratio, and the doubts about it."""
