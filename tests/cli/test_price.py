import json

from discreet import Budget
from discreet.accounting import Plan, Release, calibrate, price


def answer(run, *arguments):
    result = run("price", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_calibrates_to_a_budget(run):
    found = answer(run, "--steps", 100, "--epsilon", 1, "--delta", 1e-6)
    plan = Plan((Release("noisy_gradient", 100),))
    assert found["noise_multiplier"] == calibrate(plan, Budget(1.0, 1e-6))
    assert 0.999 < found["epsilon"] <= 1
    assert set(found["accountants"]) == {"gdp", "zcdp"}
    assert found["sensitivity_per_clip"] == 2


def test_prices_a_noise_multiplier_with_sampling(run):
    found = answer(run, "--steps", 50, "-z", 1.2, "-q", 0.01, "--neighbors", "add_remove")
    plan = Plan((Release("noisy_gradient", 50, sampling_probability=0.01),))
    assert found["epsilon"] == price(plan, 1.2, 1e-6, "add_remove")
    assert found["sampling_probability"] == 656 / 65536  # rounded up
    assert {"pld", "rdp"} <= set(found["accountants"])
