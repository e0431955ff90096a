"""The view: DuckDB tables folded from the journal. Disposable, never needed for truth; the only owner of duckdb."""
