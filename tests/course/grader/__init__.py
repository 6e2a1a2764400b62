"""The grader: its commands, its words, its limits."""
