import pytest

from mcgrpo.grade.verifier import Verifier


@pytest.fixture(scope="session")
def patient():
    """Two workers, started where they are needed, whose limit no answer reaches."""
    with Verifier(2, timeout=60) as two:
        yield two
