"""What a change introduced: the violations that stand after it and did not stand before."""
