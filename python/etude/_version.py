"""The version of Etude: the one place that says it. CMakeLists.txt and pyproject.toml read it here."""

__version__ = "0.1.0"
