"""The course as it lies on the disk: its chapters, their tasks and texts, the reference and the stubs made of it."""
