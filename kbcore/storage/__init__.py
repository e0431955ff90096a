"""One branch's files: journal, head file, snapshots, lock. Payloads are opaque bytes in here."""
