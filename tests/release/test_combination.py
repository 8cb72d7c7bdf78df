"""The file of a combined release."""

from sfumato.release.files import is_combination


def test_other_files_are_none(tmp_path):
    (tmp_path / "text.sfm").write_text("no zip")
    assert not is_combination(tmp_path / "text.sfm")
    assert not is_combination(tmp_path / "nowhere.sfm")
    assert not is_combination(tmp_path)
