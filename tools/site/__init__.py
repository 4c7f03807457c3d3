"""The documentation as a site: what is in the repository, with a navigation and a search."""
