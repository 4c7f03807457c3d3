"""The agent's connection to Kafka: client configuration, errors in plain words, the Admin client, our topics.

Shared by the stages that publish and fold. It moves bytes and knows nothing of policy.
"""
