"""For those who write the course: stubs, audits, pictures and proofs."""
