"""From paths to findings, rewrites and their evidence."""
