"""The pages of the explorer: from what is asked of a state to the values of a template, and a table for exports.

Owns which pages there are (``registry``) and what each shows. Offers a function for each. A page has at most
``PAGE_ROWS`` rows; an export has all, and is refused beyond ``MAX_EXPORT_ROWS``. Never writes.
"""
