"""Planning of a client's changeset: to operations, or to everything that is wrong with it. Pure."""
