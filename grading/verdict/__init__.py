"""What a run means: a status for every task, the cause, whose fault it is, and the forms that it is told in."""
