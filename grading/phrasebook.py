"""What lies behind errors that Python and NumPy say little about."""

import re

OF_ARRAYS = (
    "all any argmin argsort astype copy cumsum flat ndim nonzero ravel repeat round size squeeze std swapaxes tolist"
)


def explain_error(kind: str, message: str) -> str | None:
    """What lies behind some of Python's own errors that say little to somebody who meets them for the first time."""
    if kind == "TypeError" and ("does not support ufuncs" in message or "unexpected keyword argument 'out'" in message):
        return (
            "NumPy's functions take arrays, and so does += on a gradient. This is a Tensor: is a .data missing? (In "
            "chapter 10 it is .value.) Where the graph must go on, use operators and meintorch's own functions."
        )
    if kind == "TypeError" and "got an unexpected keyword argument 'requires_grad'" in message:
        return "Tensor takes no requires_grad: as_tensor(...) makes a constant, Tensor(...) what needs a gradient."
    if kind == "TypeError" and message == "a Tensor holds real numbers, not None of type NoneType":
        return (
            "None stands where numbers belong: does a function lack its return? (And in chapter 10 a node adds to no "
            ".grad: it returns a list with what each of its inputs gets.)"
        )
    if "dtype('O')" in message or (message.startswith("unsupported operand") and "'NoneType'" in message):
        return (
            "Something is no number here, but None, perhaps: np.add.at, as a list's sort(), works in place and gives "
            "None, and so does a function without return. (In chapter 10 a .grad is None, and a node adds to none.)"
        )
    if kind == "TypeError" and message.startswith("Cannot interpret '"):
        return "A shape is one argument: np.zeros((2, 3)), with a pair of brackets of its own."
    if kind == "ValueError" and message == "object too deep for desired array":
        return "A table stands where NumPy wants a line of numbers, as np.bincount does: one column at a time."
    if kind in ("MemoryError", "_ArrayMemoryError"):
        return "A check may use 4 GiB of memory. Does a list or a graph grow with every step?"
    if kind == "RecursionError":
        return "A function calls itself, directly or by way of another, and never comes to an end."
    if kind == "UnboundLocalError":
        return (
            "An assignment, += and -= too, makes a name local to its whole function. Give the result a name of its own."
        )
    array_of = re.fullmatch(r"'Tensor' object has no attribute '(\w+)'.*", message)
    if kind == "AttributeError" and array_of and array_of[1] in OF_ARRAYS.split():
        return f"An array has {array_of[1]}, and a Tensor has not: its array is in .data (in chapter 10: in .value)."
    if kind == "AttributeError" and re.match(
        r"'numpy\.\w+' object has no attribute '(value|grad|requires_grad)'", message
    ):
        return "This is an array already. Where a Tensor is wanted, wrap it: Tensor(...)."
    if kind == "AttributeError" and "'NoneType'" in message:
        return "Something is None here: does a function that was called lack its return?"
    if kind == "TypeError" and message == "'Tensor' object is not iterable":
        return "Python's own sum, max and min go through a list. A Tensor has methods for that: x.sum()."
    if kind == "TypeError" and message == "'str' object is not callable":
        return "A string was called like a function. A loop over a dict gives its keys: .values() gives what they name."
    if kind == "IndexError" and message == "tuple index out of range":
        return "A tuple is shorter than thought. Of an array with one axis the shape has one number, and no shape[1]."
    if kind == "TypeError" and message == "'NoneType' object is not iterable":
        return (
            "What is gone through here is None. A list's reverse() and sort() change it in place and give None, and so "
            "does a function without return."
        )
    return None
