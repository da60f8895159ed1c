"""One module per group of pages, and what their bodies are made of."""
