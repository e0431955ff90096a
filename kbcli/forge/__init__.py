"""Files of a project for its forge. Owns the workflow that runs KB there; never writes over what somebody changed."""
