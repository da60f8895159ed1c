"""Counters and histograms, declared once and exported twice."""
