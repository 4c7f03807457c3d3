"""The manual pages, made from the pages of reference about commands and configuration keys."""
