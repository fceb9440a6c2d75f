"""What the papers print and this book claims, and the verdicts on it."""
