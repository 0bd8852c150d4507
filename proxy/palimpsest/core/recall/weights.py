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
        **{"cosine": 3.466, "ahead": 2.67, "personal_cosine": 0.295, "meaning": 0.388, "words": 1.491},
        **{"covered": 0.428, "terms": 1.167, "named": -0.08, "speaker": 0.153, "dated": 0.896, "answers": 0.248},
        **{"user": 0.457, "asks": -0.371, "tells": 0.996, "user_tells": 0.997, "length": 0.006, "score": -0.061},
        **{"score_ahead": 1.839, "by_score": -0.145, "by_cosine": -0.272, "by_covered": -0.075, "absent": 0.242},
        **{"strangers": -0.96, "personal": 0.086, "function": 0.548, "log_words": 0.304, "long": 2.237},
        **{"quotes": -0.589, "small_talk": -1.059, "other": -0.176, "other_cosine": -1.67},
        **{"other_words": -2.662, "other_covered": 5.295, "bias": -6.24},
    },
    help={
        **{"best": 0.429, "second": 0.2, "personal": -0.035, "personal_best": -0.342, "own": 0.859},
        **{"back": 0.548, "particular": 0.138, "general": -0.512, "function": 1.281, "log_words": 0.691},
        **{"long": -2.426, "quotes": -0.058, "small_talk": -2.523, "acquainted": -0.762, "strangers": -3.08},
        **{"other": -0.442, "cosine": 4.661, "ahead": 0.218, "covered": 1.296, "user": -1.479, "tells": 1.232},
        **{"asks": -0.07, "absent": 0.131, "telling": -4.796, "near": 4.004, "very_near": -5.325},
        **{"bias": -2.635},
    },
)
PLAIN_BY_WORDS = Tables(
    passage={
        **{"words": 2.417, "covered": 1.38, "terms": 2.34, "named": -0.231, "speaker": 0.12, "dated": 0.79},
        **{"answers": 0.243, "user": 0.351, "asks": -0.383, "tells": 0.937, "user_tells": 0.892},
        **{"length": -0.309, "score": -0.576, "score_ahead": 2.829, "by_score": -0.281, "by_covered": -0.123},
        **{"absent": 0.175, "strangers": -1.044, "personal": 0.184, "function": 0.059, "log_words": 0.481},
        **{"long": 2.673, "quotes": -0.775, "small_talk": -1.844, "other": 0.385, "other_words": -3.308},
        **{"other_covered": 3.305, "bias": -6.252},
    },
    help={
        **{"best": 1.049, "second": 0.226, "personal": -0.033, "personal_best": -0.27, "own": -0.115},
        **{"back": 0.342, "particular": 0.279, "general": -0.335, "function": -0.239, "log_words": 0.666},
        **{"long": -4.095, "quotes": 0.432, "small_talk": -2.164, "acquainted": -0.365, "strangers": -2.319},
        **{"other": -0.119, "covered": -0.317, "user": -1.128, "tells": -0.128, "asks": -0.052},
        **{"absent": -0.457, "telling": -4.656, "bias": 2.475},
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
