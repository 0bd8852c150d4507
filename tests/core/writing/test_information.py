from palimpsest.core.writing.information import TermStatistics


def test_a_rare_word_tells_more_than_a_common_one_and_a_new_one_most() -> None:
    told = TermStatistics().with_texts(["the ferry sails", "the ferry waits", "the ferry rusts", "the lighthouse"])
    assert told.bits("ferri") < told.bits("lighthous") < told.bits("orsolya")
    assert told.information(("ferri", "ferri", "lighthous")) == told.bits("ferri") + told.bits("lighthous")


def test_a_word_is_counted_once_a_passage() -> None:
    assert TermStatistics().with_texts(["ferry ferry"]).held["ferri"] == 1


def test_without_statistics_all_words_tell_the_same() -> None:
    assert TermStatistics().bits("ferri") == TermStatistics().bits("orsolya")
