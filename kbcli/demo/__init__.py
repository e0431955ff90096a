"""The tour of ``kb demo``, as plain data; the example project is in ``kbcli.resources``."""
