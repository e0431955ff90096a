"""The jobs of an agent, done with KB, with a memory server and with Markdown, for `kb prove`.

Offers: the jobs as data, running them in scratch repositories, and tables of what they cost. It asks no model, and
never works in a repository of the user.
"""
