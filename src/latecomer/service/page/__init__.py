"""The page of a server and the file of a report: HTML written here, with charts as SVG, and nothing from elsewhere."""
