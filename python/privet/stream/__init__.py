"""Suite `stream` as a pipeline of stages over many servers of two organisations (PP-Stream)."""
