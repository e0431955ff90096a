"""KIP, the language of agents for knowledge: its text, its tree, and what they mean over the store."""
