"""The chapters' figures: each is a function of the rows that it shows, in a module for its chapter."""
