"""Pictures of terminals for the documents, as SVG, of real runs."""
