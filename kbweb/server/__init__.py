"""The explorer: the pages of a branch, live, for the browser of the user who started it.

Owns what listens, who may ask, and what is answered. Offers ``serve``. Never listens beyond loopback, never answers a
request that another page or another user made, and writes only by changesets.
"""
