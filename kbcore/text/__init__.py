"""Reading and wording of text: readers that know lines and positions, faults of files, sentences, escaping.

Offers trees of JSON and YAML with the line of every member, the walk over settings, and what messages are made of. It
opens no file and knows nothing of what KB stores.
"""
