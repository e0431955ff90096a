"""What a terminal shows: columns, colours, tables, a bar and a pager. Nothing here knows what KB keeps."""
