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
        **{"cosine": 3.668, "ahead": 2.958, "personal_cosine": 0.344, "meaning": 0.273, "words": 1.219},
        **{"covered": 0.556, "terms": 1.184, "named": -0.095, "speaker": 0.153, "dated": 0.934},
        **{"answers": 0.257, "user": 0.426, "asks": -0.38, "tells": 1.046, "user_tells": 1.15, "length": -0.037},
        **{"score": -0.123, "score_ahead": 1.729, "by_score": -0.129, "by_cosine": -0.338, "by_covered": -0.049},
        **{"absent": 0.298, "strangers": -0.922, "personal": 0.08, "function": 0.608, "log_words": 0.279},
        **{"long": 2.24, "quotes": -0.584, "small_talk": -1.043, "other": -0.153, "other_cosine": -1.911},
        **{"other_words": -2.937, "other_covered": 5.592, "bias": -6.285},
    },
    help={
        **{"best": 0.478, "second": 0.265, "personal": 0.011, "personal_best": -0.342, "own": 0.614},
        **{"back": 0.515, "particular": 0.073, "general": -0.494, "function": 0.796, "log_words": 1.233},
        **{"long": -3.071, "quotes": 0.187, "small_talk": -2.617, "acquainted": -0.755, "strangers": -2.924},
        **{"other": -0.285, "cosine": 5.141, "ahead": 0.358, "covered": 0.68, "user": -1.405, "tells": 1.127},
        **{"asks": -0.117, "absent": -0.071, "telling": -5.177, "near": 3.961, "very_near": -5.317},
        **{"content": 0.301, "rarest_term": 3.899, "terms_asked": -1.347, "bias": -6.417},
    },
)
PLAIN_BY_WORDS = Tables(
    passage={
        **{"words": 2.234, "covered": 1.347, "terms": 2.375, "named": -0.243, "speaker": 0.15, "dated": 0.831},
        **{"answers": 0.25, "user": 0.261, "asks": -0.368, "tells": 0.984, "user_tells": 1.078},
        **{"length": -0.362, "score": -0.73, "score_ahead": 2.898, "by_score": -0.308, "by_covered": -0.155},
        **{"absent": 0.182, "strangers": -0.981, "personal": 0.197, "function": 0.263, "log_words": 0.462},
        **{"long": 2.738, "quotes": -0.734, "small_talk": -1.708, "other": 0.321, "other_words": -3.245},
        **{"other_covered": 3.252, "bias": -6.222},
    },
    help={
        **{"best": 0.998, "second": 0.19, "personal": 0.071, "personal_best": -0.329, "own": -0.296},
        **{"back": 0.049, "particular": 0.111, "general": -0.295, "function": 0.073, "log_words": 0.545},
        **{"long": -3.508, "quotes": 0.697, "small_talk": -2.196, "acquainted": -0.271, "strangers": -2.411},
        **{"other": -0.083, "covered": 0.303, "user": -0.976, "tells": -0.204, "asks": -0.153, "absent": -0.597},
        **{"telling": -4.753, "content": 0.583, "rarest_term": 4.525, "terms_asked": 0.071, "bias": -2.727},
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
