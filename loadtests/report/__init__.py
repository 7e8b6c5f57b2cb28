"""report.html, report.md and the plots of a comparison, from its CSV files."""
