"""Reference values of Python MLX for every operation: see __main__.py."""
