"""Bugs in sums over the parts of a cluster: a part counted twice, left out, or not the one that it was."""

from tests.promises.mutants.mutant import Edit, Mutant, bug

_TALLY = "curator/clusters/tasks.py"
_REMOTE = "curator/clusters/remote.py"
_TESTS = "tests/curator/clusters/test_tally.py"
_FITS = "tests/curator/clusters/test_dask.py"
_SCORES = "tests/curator/clusters/test_scores.py"

MUTANTS = (
    bug(
        "late answers counted",
        "A task that the scheduler ran twice answers twice, and the second answer takes the place of the first.",
        _TALLY,
        "self._told.setdefault(answer.part, answer.told)",
        "self._told[answer.part] = answer.told",
        f"{_TESTS}::test_a_second_answer_of_a_part_is_dropped[other]",
        "['a', 'b', 'c']",
    ),
    bug(
        "parts left out",
        "A part that gives no answer is missing from the sum, and other passes have it.",
        _TALLY,
        "if self._told.keys() != self._seals.keys():",
        "if not self._told:",
        f"{_TESTS}::test_a_part_that_is_left_out_ends_the_fit",
        "DID NOT RAISE",
    ),
    bug(
        "a part counted twice",
        "The first part is added to the sum twice: its records count double.",
        _TALLY,
        "    for part in parts:\n",
        "    for part in [parts[0], *parts]:\n",
        f"{_TESTS}::test_sums_are_added_exactly_and_of_one_shape",
        "added(parts).tolist() ==",
    ),
    bug(
        "other records in a later pass",
        "A part is made again from a file that has changed, and passes see different records.",
        _TALLY,
        "if seal is not None and answer.seal != seal:",
        "if seal is not None and answer.seal is None:",
        f"{_TESTS}::test_a_part_that_is_not_what_it_was_ends_the_fit[bytes]",
        "DID NOT RAISE",
    ),
    bug(
        "samples by part",
        "Every part takes the numbers of the whole sample for its own: rows are drawn by their place in a part.",
        _REMOTE,
        "return [question.of_units(first, last) for first, last in pairwise(self._edges)]",
        "return [question.of_units(0, last - first) for first, last in pairwise(self._edges)]",
        f"{_FITS}::test_a_sample_does_not_depend_on_the_parts[2]",
        "bits(fitted(",
    ),
    bug(
        "persons of different readings",
        "Parts of persons that were gathered from different readings of a table are taken together.",
        _REMOTE,
        "if len(set(sources)) > 1:",
        "if len(set(sources)) > 99:",
        "tests/curator/clusters/test_persons.py::test_pieces_of_different_readings_end_the_fit",
        "DID NOT RAISE",
    ),
    Mutant(
        "pieces of persons left out",
        "A new part is made of the pieces that have come, as they come: a row may be in none, or in another place.",
        (
            Edit(
                "curator/clusters/persons.py",
                "    if pieces_of.keys() != set(range(parts)):\n        return [Failed(LOST)]\n"
                "    return [gather(number, finish, *(pieces_of[part] for part in range(parts)))]",
                "    some = [replace(piece, number=k) for k, piece in enumerate(pieces_of.values())]\n"
                "    return [gather(0, finish, *some)]",
            ),
            Edit(
                "curator/clusters/persons.py",
                "from dataclasses import dataclass\n",
                "from dataclasses import dataclass, replace\n",
            ),
        ),
        ("tests/curator/clusters/test_persons.py::test_pieces_that_come_in_any_order_are_counted_once",),
        "found == expected",
    ),
    bug(
        "a person's rows dealt twice",
        "Rows that go to a later part go to the part before it, too: their persons count in both.",
        "curator/clusters/persons.py",
        "mine = order[edges[part] : edges[part + 1]]",
        "mine = order[edges[part] : edges[min(part + 2, dealing.parts)]]",
        "tests/curator/clusters/test_failures.py::test_answers_that_come_twice_are_counted_once[score of persons]",
        "changed its size",
    ),
    bug(
        "a part of persons that takes what comes",
        "A new part does not ask whether it got one piece of every part that was read.",
        "curator/clusters/persons.py",
        "if [piece.number for piece in pieces] != list(range(len(pieces))):",
        "if not pieces:",
        "tests/curator/clusters/test_failures.py"
        "::test_rows_of_persons_that_are_dealt_wrongly_end_it[twice-search of persons]",
        "DID NOT RAISE",
    ),
    bug(
        "scored rows without their persons",
        "Each row of a person counts as a record of its own in a score on a cluster.",
        _TALLY,
        "self.how.scaling, persons, storage=MEMORY",
        "self.how.scaling, None, storage=MEMORY",
        f"{_SCORES}::test_every_metric_has_the_bits_of_memory[True-accuracy]",
        "to_text()",
    ),
    bug(
        "a score charged on a cluster that cannot answer",
        "Workers are looked at before the charge of a fit only.",
        "curator/private_data.py",
        "        if rows.elsewhere is not None:\n            rows.elsewhere.check(priced.plan, loss)\n",
        "        if opens and rows.elsewhere is not None:\n            rows.elsewhere.check(priced.plan, loss)\n",
        f"{_SCORES}::test_other_code_on_a_worker_is_refused_before_the_charge",
        "fits",
    ),
    bug(
        "held-out persons fitted on",
        "The persons of one part of a search are found by their numbers in memory, not by those on the cluster.",
        _REMOTE,
        "            here[order[chosen]] = True\n",
        "            here[chosen] = True\n",
        "tests/curator/clusters/test_searches.py::test_a_search_has_the_bits_of_memory[persons-2]",
        "released(",
    ),
    bug(
        "a search over rows that change",
        "A part that was read again, with other rows, is encoded all the same for a later run.",
        _TALLY,
        "if part.seal != chosen.seal or not",
        "if not",
        "tests/curator/clusters/test_searches.py::test_parts_that_are_made_again_of_other_rows_end_the_search",
        "DID NOT RAISE",
    ),
    bug(
        "a message of another version",
        "A message is read whatever its version, and its values may mean something else.",
        "curator/clusters/calls.py",
        "    if (name, version) != (_NAME, VERSION):\n",
        "    if name != _NAME:\n",
        "tests/curator/clusters/test_messages.py::test_what_does_not_fit_is_refused[another version]",
        "DID NOT RAISE",
    ),
    bug(
        "words of a worker's error",
        "What a task raises is passed on with its words, which may quote a cell.",
        "curator/clusters/tasks.py",
        '        except Exception:\n            return Failed("a worker could not do its part")\n',
        "        except Exception as error:\n            return Failed(str(error))\n",
        "tests/curator/clusters/test_tasks.py::test_an_error_is_returned_without_its_words",
        "SENTINEL not in repr(found)",
    ),
)
