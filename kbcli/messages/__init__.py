"""What the commands say to people: what KB keeps, what was done, and why there is nothing to show."""
