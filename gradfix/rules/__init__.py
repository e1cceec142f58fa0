"""What codemods are built of: the catalog, edits, and ways to repair."""
