"""The streams of `make test`: what is tested, cut into parts that run side by side."""
