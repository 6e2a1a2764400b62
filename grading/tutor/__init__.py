"""What a learner meets in a terminal: screens, the watch, hints, comparisons, and what is kept of their work."""
