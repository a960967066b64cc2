import pytest

from mcgrpo.estimators import registry


@pytest.fixture
def register(monkeypatch):
    """Gives estimators names that are forgotten after the test."""
    monkeypatch.setattr(registry, "ESTIMATORS", dict(registry.ESTIMATORS))
    return registry.register
