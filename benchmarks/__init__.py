"""Side-by-side measurements of the gateway: `make bench`. How to read them: docs/benchmarks.md."""
