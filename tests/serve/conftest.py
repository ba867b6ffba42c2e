import pytest

from tests.serve.services import town_of, write_files


@pytest.fixture
def town(tmp_path):
    made = town_of(write_files(tmp_path))
    yield made
    made.close()
