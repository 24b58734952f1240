"""What is refused, and what is ignored, is said in these two classes."""


class ModelError(ValueError):
    """An input that cannot become, or act on, a model: what, where, and a remedy."""


class ModelWarning(UserWarning):
    """Something in an input that the model leaves out, or that may surprise later."""
