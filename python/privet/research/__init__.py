"""The papers' evaluations, reproduced: none of it is needed to predict, serve or plan."""
