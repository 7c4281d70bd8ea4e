"""One module per part of the table. Each takes its measures in alternating rounds."""
