"""The front end for browsers: pages as HTML, in one file (`kb report`) and live (`kb ui`).

Renders what ``kbcore.pages`` reads. Text that is stored is escaped by the templates; nothing here decides what is true.
"""
