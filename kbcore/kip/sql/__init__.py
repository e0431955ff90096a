"""The steps of the algebra to one SQL statement over the tables of a view. Pure.

Text of a user enters a statement only as a bound parameter; names of tables and columns are fixed.
"""
