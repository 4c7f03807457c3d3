"""The cost of a large cluster for an agent, and a whole fleet over days (`make scale`)."""
