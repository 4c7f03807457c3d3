"""What a large cluster costs an agent, and what a whole fleet does over days (`make scale`)."""
