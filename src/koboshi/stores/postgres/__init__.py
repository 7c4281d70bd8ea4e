"""The store of several gateways: one PostgreSQL, reached through psycopg's layer of libpq."""
