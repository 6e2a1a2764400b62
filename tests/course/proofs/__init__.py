"""The course keeps its promises: texts, stubs, solutions and checks fit, and the checks catch mistakes."""
