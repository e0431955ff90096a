"""The texts of the commands for people: the data of KB, changes, and why there is nothing to show."""
