"""Changes of clients as claims, which travel with the code and merge in any order.

Owns: a change, its id and its claims, the state that a set of changes gives, and the claims of a new change.
Offers: ``change`` (data and ids), ``fold``, ``edits``. Never: reads or writes anything, or asks for the time.
"""
