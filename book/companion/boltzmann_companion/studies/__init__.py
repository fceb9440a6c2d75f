"""Studies: many runs of one kind on many models, whose rows the chapters show."""
