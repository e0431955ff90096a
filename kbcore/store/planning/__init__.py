"""Planning a client's changeset: from what it asks to operations, or to everything that is wrong with it. Pure."""
