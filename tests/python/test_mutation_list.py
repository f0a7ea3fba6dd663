"""The list of masks fits the sources, and the page about it says what the list says."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from scripts.mutation.masks import Edit, Mask, faults, load
from scripts.mutation.table import count, table
from scripts.mutation.tests import Test
from scripts.mutation.tree import Tree

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "masks.md"
SOURCE = "crates/gmw/src/and.rs"
TEST = Test.parse("gmw::whole::privacy::and_is_masked")


def mask(*edits: Edit, name: str = "a-mask", test: Test = TEST) -> Mask:
    return Mask(name, "gmw", "a mask", "a mutant", edits, test, still_right=None, quick=False)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A repository of one source and one test."""
    for name, text in {SOURCE: "let x = a;\nlet y = a;\n", **TEST_FILE}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path


TEST_FILE = {"crates/gmw/tests/whole/privacy.rs": "#[test]\nfn and_is_masked() {\n}\n"}


def test_every_mask_is_where_the_list_says() -> None:
    assert list(faults(load(), ROOT)) == []


def test_every_part_has_masks_and_a_quick_one() -> None:
    masks = load()
    parts = {"bfv", "fss", "gmw", "linear", "ot", "party", "prg", "shark", "stream"}
    assert {mask.part for mask in masks} == parts | {"python"}
    assert {mask.part for mask in masks if mask.quick} == parts


def test_the_page_has_the_list_and_its_count() -> None:
    page = PAGE.read_text()
    masks = load()
    assert count(masks) in page
    match = re.search(r"<!-- table: .* -->\n(.*?)\n*\Z", page, re.DOTALL)
    assert match is not None
    assert match[1] == table(masks), "write it anew: python -m scripts.mutation --table"


def test_a_mask_that_fits_has_no_fault(small: Path) -> None:
    assert list(faults([mask(Edit(SOURCE, "x = a", "x = 0"))], small)) == []


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        (Edit(SOURCE, "= a", "= 0"), f"a-mask: {SOURCE} has 2 times, not once: = a"),
        (Edit(SOURCE, "x = b", "x = 0"), f"a-mask: {SOURCE} has 0 times, not once: x = b"),
        (Edit("gone.rs", "x = a", "x = 0"), "a-mask: there is no gone.rs"),
        (Edit(SOURCE, "x = a", "x = a"), "a-mask: nothing is replaced"),
    ],
)
def test_an_edit_that_does_not_fit_is_named(small: Path, edit: Edit, fault: str) -> None:
    assert list(faults([mask(edit)], small)) == [fault]


def test_names_and_tests_that_do_not_fit_are_named(small: Path) -> None:
    fits = mask(Edit(SOURCE, "x = a", "x = 0"))
    assert list(faults([fits, fits], small)) == ["a-mask: 2 masks have this name"]
    assert len(list(faults([replace(fits, id="A mask")], small))) == 1
    stray = replace(fits, caught_by=Test.parse("gmw::whole::privacy::or_is_masked"))
    assert list(faults([stray], small)) == [
        "a-mask: there is no test gmw::whole::privacy::or_is_masked"
    ]
    with pytest.raises(ValueError, match="names no test"):
        Test.parse("and_is_masked")


def test_a_tree_loses_a_mask_and_gets_it_back(tmp_path: Path) -> None:
    tree = Tree(ROOT, tmp_path / "tree")
    (tmp_path / "tree" / "left over").touch()
    source = (ROOT / SOURCE).read_text()
    copy = tmp_path / "tree" / SOURCE
    edits = [Edit(SOURCE, "//! AND of bits", "//! OR of bits"), Edit(SOURCE, "(GMW)", "(BMR)")]
    with tree.without(mask(*edits)):
        assert copy.read_text() == source.replace("AND of bits", "OR of bits").replace("GMW", "BMR")
    assert copy.read_text() == source
    assert os.access(tmp_path / "tree" / "scripts" / "rustc.sh", os.X_OK), "cargo calls it"
    mtime = copy.stat().st_mtime_ns
    Tree(ROOT, tmp_path / "tree")
    assert copy.stat().st_mtime_ns == mtime, "what is the same is not written again"
    assert not (tmp_path / "tree" / "left over").exists()


def test_a_tree_takes_no_folder_that_has_other_files(tmp_path: Path) -> None:
    (tmp_path / "a thesis").touch()
    with pytest.raises(FileExistsError):
        Tree(ROOT, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a thesis"]


@pytest.mark.parametrize(
    ("status", "output", "verdict"),
    [
        (0, "test result: ok. 1 passed; 0 failed;", "passed"),
        (0, "test result: ok. 0 passed; 0 failed;", "neither passed nor failed"),
        (101, "failures:\n    privacy::and_is_masked\n", "failed"),
        (101, "failures:\n    privacy::and_is_masked_too\n", "neither passed nor failed"),
        (101, "error: could not compile `privet-gmw`", "did not compile"),
        (101, "error: linking failed", "neither passed nor failed"),
    ],
)
def test_only_a_failed_test_counts(status: int, output: str, verdict: str) -> None:
    assert TEST.verdict(status, output).value == verdict
