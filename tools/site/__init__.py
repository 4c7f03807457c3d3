"""The documentation as a site: the repository's pages, with a navigation and a search."""
