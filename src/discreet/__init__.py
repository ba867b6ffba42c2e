"""Differentially private linear models whose guarantee holds for the bits that ran.

The names of ``__init__.pyi`` are the public interface, and those of the subpackages that it lists. Each is imported
when it is first used.
"""

from discreet.lazy_names import lazy_names

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_names(__spec__)
__all__ += ["__version__"]
