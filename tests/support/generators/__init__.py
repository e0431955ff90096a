"""Random inputs that mean something: histories, trees of documents, KIP.

It offers seeds' and Hypothesis' examples as plain values. It never says what the right answer is.
"""
