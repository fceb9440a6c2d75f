"""From notebooks to pages: execution, the extension for Sphinx, the printed book."""
