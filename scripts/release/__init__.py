"""What is checked before a release: dependencies, their licences, known flaws, and the wheel."""
