"""
The fitted weights of `relevance.py`: log-odds for each unit of a signal; "bias" is the constant.

Talks whose texts name their speakers have tables of their own: there nobody is the user, most messages only chat, and a
question names whom it is about. Without vectors passages are ranked by words, and those tables were fitted on that.
No table knows how large the scope is: `scripts/fit.py`, which fits all of them, asks each question alone and behind
archives of several sizes.
"""

from __future__ import annotations

from collections.abc import Mapping

from palimpsest.domain.frozen import frozen

Weights = Mapping[str, float]


@frozen
class Tables:
    """Weights of the signals of a passage, and of those that tell whether memory helps at all."""

    passage: Weights
    help: Weights


PLAIN = Tables(
    passage={
        **{"cosine": 3.259, "ahead": 2.037, "personal_cosine": 0.226, "meaning": 0.353, "words": 2.028},
        **{"covered": 0.236, "terms": 1.295, "named": -0.114, "speaker": 0.171, "dated": 0.881},
        **{"answers": 0.246, "user": 0.466, "asks": -0.333, "tells": 0.909, "user_tells": 0.808},
        **{"length": 0.107, "score": 0.191, "score_ahead": 1.952, "by_score": -0.208, "by_cosine": -0.193},
        **{"by_covered": -0.104, "absent": 0.091, "strangers": -0.917, "personal": 0.09, "function": 0.6},
        **{"log_words": 0.311, "long": 2.231, "quotes": -0.429, "small_talk": -0.961, "other": -0.158},
        **{"other_cosine": -1.019, "other_words": -2.04, "other_covered": 4.523, "bias": -6.422},
    },
    help={
        **{"best": 0.532, "second": 0.164, "personal": -0.024, "personal_best": -0.285, "own": 0.847},
        **{"back": -0.097, "particular": 0.303, "general": -0.248, "function": 2.04, "log_words": 0.031},
        **{"long": -1.587, "quotes": 0.058, "small_talk": -2.017, "acquainted": -1.064, "strangers": -2.909},
        **{"other": -0.509, "cosine": 5.327, "ahead": -1.589, "covered": 1.743, "user": -2.02, "tells": 1.186},
        **{"asks": 0.236, "absent": 0.522, "bias": -1.702},
    },
)
PLAIN_BY_WORDS = Tables(
    passage={
        **{"words": 2.908, "covered": 1.098, "terms": 2.533, "named": -0.255, "speaker": 0.108, "dated": 0.797},
        **{"answers": 0.234, "user": 0.374, "asks": -0.291, "tells": 0.95, "user_tells": 0.755},
        **{"length": -0.226, "score": -0.24, "score_ahead": 2.747, "by_score": -0.256, "by_covered": -0.105},
        **{"absent": 0.015, "strangers": -0.955, "personal": 0.171, "function": 0.049, "log_words": 0.478},
        **{"long": 2.561, "quotes": -0.6, "small_talk": -1.712, "other": 0.742, "other_words": -3.278},
        **{"other_covered": 2.989, "bias": -6.614},
    },
    help={
        **{"best": 1.096, "second": 0.308, "personal": -0.078, "personal_best": -0.132, "own": 0.19},
        **{"back": 0.131, "particular": 0.472, "general": -0.139, "function": 0.248, "log_words": 0.05},
        **{"long": -3.529, "quotes": 0.19, "small_talk": -1.887, "acquainted": -0.603, "strangers": -1.931},
        **{"other": -0.257, "covered": 0.339, "user": -1.482, "tells": 0.198, "asks": 0.13, "absent": 0.396},
        **{"bias": 3.035},
    },
)
OF_SPEAKERS = Tables(
    passage={
        **{"cosine": 0.528, "ahead": 0.606, "meaning": -0.345, "words": 1.711, "covered": -0.423},
        **{"terms": 0.411, "named": 0.13, "speaker": -0.142, "dated": 0.485, "asks": -0.15, "tells": 0.892},
        **{"length": 0.701, "score": 1.501, "score_ahead": 4.384, "by_score": -0.604, "absent": 0.917},
        **{"strangers": -0.569, "personal": 0.022, "function": -0.689, "log_words": -0.435, "long": 0},
        **{"quotes": 0.106, "small_talk": 0, "bias": -2.821},
    },
    help={
        **{"best": 1.46, "second": 0.411, "personal": 0.036, "personal_best": 0.668, "own": 6.565},
        **{"back": -0.712, "particular": 0.27, "general": 0.052, "function": -0.96, "log_words": 0.421},
        **{"long": 0, "quotes": 1.154, "small_talk": 0, "acquainted": 1.074, "strangers": -2.105, "other": 0},
        **{"cosine": 18.048, "ahead": -13.924, "covered": 3.902, "user": 0.731, "tells": -1.32, "asks": -1.024},
        **{"absent": -1.892, "bias": -6.637},
    },
)
OF_SPEAKERS_BY_WORDS = Tables(
    passage={
        **{"words": 1.317, "covered": -0.388, "terms": 0.807, "named": 0.01, "speaker": -0.391, "dated": 0.292},
        **{"asks": 0.045, "tells": 0.998, "length": 0.585, "score": 0.932, "score_ahead": 4.257},
        **{"by_score": -0.588, "absent": 0.843, "strangers": -0.463, "personal": 0.035, "function": -0.357},
        **{"log_words": -0.385, "long": 0, "quotes": -0.007, "small_talk": 0, "bias": -2.455},
    },
    help={
        **{"best": 0.632, "second": 0.346, "personal": -0.084, "personal_best": 0.261, "own": 0.744},
        **{"back": -1.161, "particular": 0.148, "general": 0.099, "function": -2.617, "log_words": 0.025},
        **{"long": 0, "quotes": 0.922, "small_talk": 0, "acquainted": 1.24, "strangers": -2.72, "other": 0},
        **{"covered": 4.733, "user": -2.362, "tells": 0.141, "asks": -0.087, "absent": -4.03, "bias": 1.324},
    },
)
