"""Places of a fleet that are not folders of this machine, and organisations of many repositories.

It offers a real server of S3 on loopback, and never imports its parts into the process of a test.
"""
