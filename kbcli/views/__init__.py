"""Answers that are a page of their own, each in every format that its command has."""
