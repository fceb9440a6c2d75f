"""How results are shown: chapters and their execution, the book, tables, plots, the report, and players."""
