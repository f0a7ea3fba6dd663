"""The operator's page: one file each of HTML, style and script, served as they are."""
