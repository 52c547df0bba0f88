"""Backup and restore on SQLite: a copy while others write, a check of it, and the town as it was."""

import sys

import townsquare

with townsquare.Client.open("town") as client:
    service = client.as_service()
    service.spaces.create_space("Harbor", is_public=True)
    client.backup("town-copy.db")  # rows and files of one moment; writers go on
    service.spaces.create_space("Written after the backup", is_public=True)
    print("in the town:", len(client.spaces.get_public_spaces()))

# The folder must not have a database yet. Everything is restored, or nothing.
townsquare.Client.restore("town-copy.db", "restored")
with townsquare.Client.open("restored") as client:
    print("in the copy:", len(client.spaces.get_public_spaces()))
    findings = client.check(full=True)
    for finding in findings:
        print(finding.severity, finding.code, finding.message, finding.advice, file=sys.stderr)
    print("broken:", [finding.code for finding in findings if finding.severity == "error"])
