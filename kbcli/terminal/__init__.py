"""Terminal output: columns, colours, tables, a bar and a pager. Nothing here depends on the data of KB."""
