"""Does your Kafka survive a full disk? The same black-box trial for every system."""
