"""
The fitted weights of `relevance.py`: log-odds for each unit of a signal; "bias" is the constant.

Talks whose texts name their speakers have tables of their own: there nobody is the user, most messages only chat, and a
question names whom it is about. Their gate does not know how large the scope is: five talks have five sizes, and a gate
that had learnt them was silent in larger ones. Without vectors passages are ranked by words, and those tables were
fitted on that. `scripts/fit.py` fits all of them.
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
        **{"cosine": 1.636, "above": 1.733, "deviation": 2.243, "behind": 0.036, "meaning": 0.237, "words": 0.623},
        **{"covered": 0.614, "terms": 0.734, "named": 0.958, "speaker": 0.412, "dated": 0.749, "answers": 0.032},
        **{"user": 0.689, "asks": -0.226, "tells": 0.844, "user_tells": 0.755, "length": 0.108, "score": 2.059},
        **{"by_score": -0.163, "by_cosine": 0.03, "by_covered": -0.197, "absent": -0.405, "strangers": -0.921},
        **{"middle": 2.316, "personal": 0.095, "personal_above": 0.335, "function": 0.373, "log_words": 0.131},
        **{"long": 1.461, "quotes": -0.865, "small_talk": -1.388, "other": 0.355, "other_cosine": -0.58},
        **{"other_deviation": -0.766, "other_words": -3.617, "other_covered": 6.494, "bias": -9.257},
    },
    help={
        **{"best": 0.107, "together": 1.639, "personal": -0.315, "own": 1.974, "back": 0.63, "particular": 0.727},
        **{"general": -0.786, "function": 1.599, "log_words": 0.074, "long": -3.184, "quotes": -1.348},
        **{"small_talk": -3.195, "acquainted": -0.682, "strangers": 0.586, "other": -0.652, "deviation": -0.721},
        **{"above": 2.726, "covered": 1.123, "user": -0.863, "tells": 1.256, "asks": 0.591, "absent": -1.312},
        **{"log_passages": -4.174, "bias": 4.907},
    },
)
PLAIN_BY_WORDS = Tables(
    passage={
        **{"words": 1.442, "covered": 2.022, "terms": 2.226, "named": 0.658, "speaker": 0.337, "dated": 0.524},
        **{"answers": 0.056, "user": 0.866, "asks": -0.186, "tells": 0.783, "user_tells": 0.762, "length": -0.235},
        **{"score": 1.6, "by_score": -0.273, "by_covered": -0.264, "absent": -0.877, "strangers": -1.089},
        **{"personal": 0.178, "function": 0.177, "log_words": 0.15, "long": 1.519, "quotes": -0.955},
        **{"small_talk": -2.391, "other": 0.851, "other_words": -9.239, "other_covered": 5.956, "bias": -7.292},
    },
    help={
        **{"best": 0.774, "together": 0.667, "personal": -0.305, "own": 1.613, "back": 0.85, "particular": 1.091},
        **{"general": -0.73, "function": 0.696, "log_words": 0.245, "long": -2.852, "quotes": -1.756},
        **{"small_talk": -2.93, "acquainted": -0.398, "strangers": 0.379, "other": -1.002, "covered": 0.383},
        **{"user": -0.484, "tells": -0.62, "asks": -0.341, "absent": -0.339, "log_passages": -1.787, "bias": 3.45},
    },
)
OF_SPEAKERS = Tables(
    passage={
        **{"cosine": -0.075, "above": -0.084, "deviation": 1.016, "behind": -0.992, "meaning": -0.766, "words": 2.385},
        **{"covered": 0.149, "terms": 0.312, "named": 0.745, "speaker": 0.188, "dated": 0.543, "asks": -0.164},
        **{"tells": 0.841, "length": 0.977, "score": 4.909, "by_score": -0.565, "absent": 0.77, "strangers": -0.231},
        **{"middle": -0.015, "personal": -0.006, "function": -0.179, "log_words": -0.243, "long": 0, "quotes": -0.081},
        **{"small_talk": 0, "bias": -7.645},
    },
    help={
        **{"best": 1.11, "together": -0.43, "personal": -0.058, "own": 2.525, "back": 0.263, "particular": -0.124},
        **{"general": -0.015, "function": -0.559, "log_words": 0.544, "long": 0, "quotes": 1.867, "small_talk": 0},
        **{"acquainted": 2.35, "strangers": -2.422, "other": 0, "deviation": -1.582, "above": 6.252, "covered": 3.518},
        **{"user": 0, "tells": -0.619, "asks": -0.221, "absent": -3.191, "bias": -0.934},
    },
)
OF_SPEAKERS_BY_WORDS = Tables(
    passage={
        **{"words": 2.138, "covered": 0.259, "terms": 0.626, "named": 0.646, "speaker": -0.04, "dated": 0.4},
        **{"asks": -0.023, "tells": 0.938, "length": 0.86, "score": 4.035, "by_score": -0.586, "absent": 0.741},
        **{"strangers": -0.507, "personal": 0, "function": -0.264, "log_words": -0.142, "long": 0, "quotes": 0.013},
        **{"small_talk": 0, "bias": -6.713},
    },
    help={
        **{"best": 1.189, "together": -0.187, "personal": -0.038, "own": 1.833, "back": 0.142, "particular": -0.025},
        **{"general": 0.028, "function": -0.239, "log_words": 0.57, "long": 0, "quotes": 1.929, "small_talk": 0},
        **{"acquainted": 2.168, "strangers": -2.291, "other": 0, "covered": 4.147, "user": 0, "tells": -1.459},
        **{"asks": -0.421, "absent": -3.207, "bias": -0.473},
    },
)
