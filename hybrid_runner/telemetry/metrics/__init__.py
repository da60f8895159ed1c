"""Metrics: declared once in `instruments`, exported to Prometheus and to OTLP."""
