"""Parallel tempering: chains at all temperatures, their estimate of ln Z by Bennett's ratio, and the warnings about it."""
