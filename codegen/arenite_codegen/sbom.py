# SPDX-License-Identifier: Apache-2.0
"""The bundle's software bill of materials."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["sbom"]


def sbom(manifest: dict[str, Any], models_digest: str) -> str:
    """An SPDX 2.3 document: one package, its files with their digests. No time, so that it is reproducible.

    Args:
        manifest: Of the finished bundle.
        models_digest: What identifies the models, hexadecimal.
    """
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"arenite-bundle-{models_digest[:16]}-{manifest['board']}",
        "documentNamespace": f"urn:arenite:bundle:{models_digest}:{manifest['board']}",
        "creationInfo": {"created": "1970-01-01T00:00:00Z", "creators": [f"Tool: {manifest['generator']}"]},
        "packages": [
            {
                "SPDXID": "SPDXRef-bundle",
                "name": "firmware-bundle",
                "downloadLocation": "NOASSERTION",
                "filesAnalyzed": False,
                "licenseConcluded": "NOASSERTION",
                "licenseDeclared": "Apache-2.0",
                "copyrightText": "NOASSERTION",
            }
        ],
        "relationships": [
            {
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": "SPDXRef-bundle",
            }
        ],
        "files": [
            {
                "SPDXID": f"SPDXRef-file-{position}",
                "fileName": f"./{name}",
                "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
                "licenseConcluded": "NOASSERTION",
                "copyrightText": "NOASSERTION",
            }
            for position, (name, digest) in enumerate(manifest["files"].items())
        ],
    }
    return json.dumps(document, indent=1) + "\n"
