"""Players for the book: frames, chains and traces that a reader steps through in the page."""
