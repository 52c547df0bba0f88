"""What is wrong, the worst first. Nothing is changed."""

import os
import sys

import townsquare

with townsquare.Client.open(os.environ.get("TOWNSQUARE_DATA_DIR", "town")) as client:
    findings = client.check(full="--full" in sys.argv)
    for finding in findings:
        print(finding.severity, finding.code, finding.message, finding.advice, file=sys.stderr)
    errors = sum(finding.severity == "error" for finding in findings)
    print(f"{errors} errors")
