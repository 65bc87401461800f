"""Sentences that state something are found, with quantities, section and confidence."""

import math
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents import PAPER
from labharness.work.admission.quantities import quantities
from labharness.work.capability.document_analysis.findings import (
    BEGIN,
    MARKS,
    confidence_of,
    findings,
    growth_of,
)
from labharness.work.capability.document_analysis.sections import (
    sections_of_markdown,
    sections_of_text,
    sentences,
)
from rig import HERE

PAPERS = tomllib.loads((HERE / "data" / "finding_sentences.toml").read_text("utf-8"))


@pytest.mark.parametrize(
    ("text", "low", "high", "si_low", "si_unit"),
    [
        ("grown at 750 °C now", 750, 750, 1023.15, "K"),
        ("heated to 700-750 °C", 700, 750, 973.15, "K"),
        ("at 15 °C/min", 15, 15, 0.25, "K s^-1"),
        ("separated by 18.6 cm^-1.", 18.6, 18.6, 1860, "m^-1"),
        ("separated by 18.6 cm−1.", 18.6, 18.6, 1860, "m^-1"),
        ("at 1.2 × 10^5 Pa (Fig. 3a)", 1.2e5, 1.2e5, 1.2e5, "Pa"),
        ("at 3 mTorr", 3, 3, 3e-3 * 101_325 / 760, "Pa"),
        ("a mobility of 12.5 cm2 V−1 s−1", 12.5, 12.5, 12.5e-4, "m^2 V^-1 s^-1"),
        ("a 3-fold increase", 3, 3, 3, "1"),
        ("95% of it", 95, 95, 0.95, "1"),
        ("5 ± 1 nm", 4, 6, 4e-9, "m"),
        ("at 12,000 rpm", 12_000, 12_000, 200, "Hz"),
        ("生长 15 分钟", 15, 15, 900, "s"),
        ("温度为750 °C", 750, 750, 1023.15, "K"),
    ],
)
def test_a_quantity_is_read_with_its_unit_and_written_in_si(
    text: str, low: float, high: float, si_low: float, si_unit: str
) -> None:
    (found,) = quantities(text)
    assert (found.low, found.high, found.si_unit) == (low, high, si_unit)
    assert math.isclose(found.si_low, si_low, rel_tol=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "Fig. 3a",
        "in 2019",
        "MoS2",
        "30 cm2/(V s)",
        "a ratio of 1e6",
        "5 apples",
        "ref. 12",
        "5 nmx",
    ],
)
def test_a_number_whose_unit_is_not_known_to_its_end_is_left_out(text: str) -> None:
    assert quantities(text) == ()


@given(st.text(max_size=300))
def test_no_text_breaks_the_search(text: str) -> None:
    for each in findings(sections_of_markdown(text)):
        assert each.statement
        assert 0.0 < each.confidence < 1.0
    assert growth_of(sections_of_text(text)) is None or text


def test_each_finding_has_its_sentence_its_section_and_its_kind() -> None:
    found = {each.statement: each for each in findings(sections_of_markdown(PAPER))}
    coverage = next(each for said, each in found.items() if "coverage" in said)
    assert coverage.statement in PAPER
    assert (coverage.source_section, coverage.kind) == ("Results, Section 3.2", "outcome")
    assert [each.text for each in coverage.quantities] == ["85 %", "10 min", "40 %", "5 min"]
    assert found["The catalyst achieves a 95% conversion rate under ambient conditions."]
    assert not any("A. Author" in said for said in found), "references state nothing of this paper"


def test_a_sentence_of_others_or_a_guess_has_less_confidence_than_a_result() -> None:
    found = {each.statement: each.confidence for each in findings(sections_of_markdown(PAPER))}
    of_others = next(value for said, value in found.items() if "earlier work" in said)
    assert of_others < 0.4 < 0.8 < max(found.values())


@given(st.sets(st.sampled_from(sorted(MARKS))), st.sampled_from(sorted(MARKS)))
def test_confidence_is_monotone_in_every_mark(marks: set[str], mark: str) -> None:
    before, after = confidence_of(marks - {mark}), confidence_of(marks | {mark})
    assert (after - before) * MARKS[mark] >= 0
    total = BEGIN + sum(MARKS[each] for each in marks)
    assert math.isclose(confidence_of(marks), 1 / (1 + math.exp(-total)), abs_tol=5e-4)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("It is 5 nm (Fig. 3). It holds.", ["It is 5 nm (Fig. 3).", "It holds."]),
        ("See A. Smith et al. for more.", ["See A. Smith et al. for more."]),
        ("温度为 750 °C。生长完成。", ["温度为 750 °C。", "生长完成。"]),
        ("- one item\n- two items", ["one item", "two items"]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, parts: list[str]) -> None:
    assert list(sentences(text)) == parts


def test_sections_of_a_plain_text_are_told_by_numbers_and_by_usual_headings() -> None:
    text = "Title of it\n\nAbstract\nOne.\n\n2 Methods\nTwo.\n\n2.1 Growth of films\nThree.\n"
    names = [each.name for each in sections_of_text(text)]
    assert names == ["", "Abstract", "Methods, Section 2", "Methods, Section 2.1"]


def test_a_growth_is_read_from_what_its_sentences_state() -> None:
    found = growth_of(sections_of_markdown(PAPER))
    assert found is not None
    assert (found["target_material"], found["substrate"]) == ("MoS2", "SiO2/Si")
    assert found["temperature_range"] == {"min": 700.0, "max": 750.0, "unit": "celsius"}
    assert found["recipe"] == {"dwell_s": 600.0, "argon_sccm": 50.0}


@pytest.mark.parametrize(
    ("text", "grown"),
    [
        (
            "WS2 was grown on sapphire at 850 °C by CVD. Films were transferred to SiO2/Si.",
            ("WS2", "sapphire", 850.0),
        ),
        (
            "Oxidised wafers (SiO2/Si) are usual. Here CVD of WS2 on sapphire was done at 900 °C.",
            ("WS2", "sapphire", 900.0),
        ),
        (
            "MoS2 was grown by CVD on SiO2/Si at 750 °C. Grains grown at 750 °C are larger "
            "compared with those grown at 700 °C.",
            ("MoS2", "SiO2/Si", 750.0),
        ),
        (
            "MoS2 grown by CVD at 700 °C is patchy, whereas growth at 750 °C covers the SiO2/Si.",
            ("MoS2", "SiO2/Si", 700.0),
        ),
    ],
)
def test_a_growth_has_its_own_substrate_and_its_own_temperature(
    text: str, grown: tuple[str, str, float]
) -> None:
    found = growth_of(sections_of_markdown(text))
    assert found is not None
    least_c, most_c, _ = found["temperature_range"].values()
    assert (found["target_material"], found["substrate"], least_c) == grown
    assert most_c == least_c
    assert found["sources"]


def test_a_paper_without_a_growth_proposes_none() -> None:
    assert growth_of(sections_of_markdown("MoS2 was measured at 700 °C by Raman.")) is None


def of_sentences() -> list[tuple[float, bool]]:
    """Return the confidence of each sentence that is stated, and whether it is right."""
    found = []
    for rows in PAPERS.values():
        for title, sentence, right in rows:
            stated = findings(sections_of_markdown(f"# {title}\n\n{sentence}\n"))
            found += [(each.confidence, right) for each in stated]
    return found


def test_a_stated_confidence_is_how_often_it_is_right() -> None:
    from scipy.stats import binomtest  # half a second, in each worker, if it stood above

    made = of_sentences()
    assert len(made) >= 45
    assert len(PAPERS) >= 10
    for low, high in ((0.0, 0.5), (0.5, 0.75), (0.75, 0.9), (0.9, 1.0)):
        one = [each for each in made if low <= each[0] < high]
        right, stated = sum(truth for _, truth in one), sum(said for said, _ in one) / len(one)
        assert binomtest(right, len(one), stated).pvalue > 0.01, (low, right, len(one), stated)
    brier = sum((said - truth) ** 2 for said, truth in made) / len(made)
    assert brier < 0.06, "a constant share of right ones has 0.09"


def test_key_findings_without_a_number_are_found() -> None:
    wordy = [
        (title, sentence)
        for rows in PAPERS.values()
        for title, sentence, right in rows
        if right and title in ("Abstract", "Results") and not quantities(sentence)
    ]
    found = [
        bool(findings(sections_of_markdown(f"# {title}\n\n{sentence}\n")))
        for title, sentence in wordy
    ]
    assert len(wordy) >= 15
    assert sum(found) >= 0.9 * len(found)
