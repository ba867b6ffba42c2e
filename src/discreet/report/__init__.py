"""Figures and pages from certificates and solutions; never from data."""
