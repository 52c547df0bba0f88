"""What is wrong, the worst first. Nothing is changed, and no database is made or migrated."""

import os
import sys

import townsquare

folder = os.environ.get("TOWNSQUARE_DATA_DIR", "town")
# `open` reads the variable, too. The URL may have a password: print its name alone.
checked = "TOWNSQUARE_DATABASE_URL" if "TOWNSQUARE_DATABASE_URL" in os.environ else os.path.join(folder, "townsquare.db")

try:
    client = townsquare.Client.open(folder, migrate=False)
except townsquare.Error as error:
    sys.exit(f"{checked}: {error}")
with client:
    findings = client.check(full="--full" in sys.argv)
for finding in findings:
    print(finding.severity, finding.code, finding.message, finding.advice, file=sys.stderr)
errors = sum(finding.severity == "error" for finding in findings)
print(f"{checked}: errors: {errors}")
sys.exit(errors > 0)
