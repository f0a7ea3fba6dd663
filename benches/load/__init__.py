"""Load on `privet serve`: many clients for long, idle clients, and peers that stall."""
