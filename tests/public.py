"""What a package of the library offers."""


def public(package):
    """The functions and classes that a package takes from its own modules, by name."""
    inside = f"{package.__name__}."
    return {
        name: value
        for name, value in vars(package).items()
        if getattr(value, "__module__", "").startswith(inside)
    }
