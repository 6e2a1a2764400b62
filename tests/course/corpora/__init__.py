"""Known mistakes, right answers in other styles, hostile packages, and what must become of each."""
