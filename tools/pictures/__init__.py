"""Pictures for the documents: of terminals as SVG, of pages in a browser as PNG, all of real runs."""
