"""The data types that all parts share: spans, edits, findings, fixes and claims; the ledger of gradients."""
