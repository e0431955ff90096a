"""What a client reads without calling a tool: resources, subscriptions to them, prompts, and the instructions."""
