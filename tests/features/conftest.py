"""The admin API with something in it, for the operations of features."""

from tests.edge.admin.conftest import home, house, inhabited, inhabited_database

__all__ = ["home", "house", "inhabited", "inhabited_database"]
