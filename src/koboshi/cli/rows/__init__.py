"""`koboshi sessions`, `turns`, `inbox`, `outbox`: rows, and what operators decide."""
