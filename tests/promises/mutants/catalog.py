"""All mutants, in one order."""

from tests.promises.mutants import accounts, clusters, counts, inputs, noise, prices, sensitivity

MUTANTS = tuple(
    sorted(
        (
            *accounts.MUTANTS,
            *clusters.MUTANTS,
            *counts.MUTANTS,
            *inputs.MUTANTS,
            *noise.MUTANTS,
            *prices.MUTANTS,
            *sensitivity.MUTANTS,
        ),
        key=lambda mutant: mutant.name.lower(),
    )
)
