import json
import re

import pytest

SMALL = ("forecast", "--rows", 300, "--features", 4, "--seeds", 2)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("options", "score"),
    [
        (("--classes", 3, "--ceiling", 0.8), "accuracy"),
        (("--task", "regression", "--neighbors", "zero_out"), "R2"),
        (("--task", "counts"), "R2"),
        (("--neighbors", "add_remove", "--delta", 1e-5, "--solver", "gd"), "accuracy"),
    ],
)
def test_json_is_all_there_is_on_stdout(run, options, score):
    result = run(*SMALL, *options, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["score"] == score
    assert found["asked"]["n"] == 300
    assert len(found["over_epsilon"]) == len(found["over_n"]) == 7
    assert len(found["asked"]["gaps"]) == 2
    assert found["answer"].startswith("At epsilon = 1 ")


def test_no_simulated_accuracy_is_quoted(run):
    """What a synthetic table's model reaches says nothing about anybody's own."""
    result = run(*SMALL)
    text = result.stdout.replace("85.0% (the ceiling)", "")
    predicted = re.compile(
        r"costs\s+about\s.*?\sless\s+than\s+[\d.]+%", re.DOTALL
    )  # of explain, from public facts alone
    assert predicted.search(text)
    assert "%" not in predicted.sub("", text)
    assert "without privacy on the same rows" in " ".join(text.split())


def test_the_time_on_a_cluster_is_predicted(run, refused):
    words = ("forecast", "-n", 3000, "-p", 3, "--seeds", 2, "--solver", "gd", "--cluster-workers", 2)
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["cluster"]
    assert (found["workers"], found["parts"]) == (2, 1)
    assert found["seconds"] == pytest.approx(found["read"] + found["work"] + found["overhead"])
    refused(*words, "--effects")
