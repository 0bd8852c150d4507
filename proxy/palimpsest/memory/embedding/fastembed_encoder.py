"""
An embedding model that fastembed runs: any but the default one.

Its vectors are centred: the mean of what it makes of unrelated sentences is taken off them. Many models put all texts
into a narrow cone, where unrelated ones have a cosine of .8. Centred, their cosines spread as those of the default
model do, for which relevance was fitted, and the signs of their components tell them apart (Mu and Viswanath,
"All-but-the-Top", ICLR 2018). With the small multilingual E5, unrelated texts have a mean cosine of .15 instead of .78
(.05 with the default model), and what answers a hundred English questions stands 3.2 standard deviations above the
rest instead of 2.6.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from palimpsest.domain.errors import MemoryFault
from palimpsest.domain.ports import Vectors
from palimpsest.memory.embedding.batching import SLICE_TEXTS, embed_in_batches
from palimpsest.settings.embedding_models import EmbeddingModel, text_embedding

LEAST_LENGTH = 1e-6  # of a vector; an empty text has none in a table of words' vectors

ENGLISH = (
    "Good morning, how are you today?",
    "The meeting was moved to Thursday at ten.",
    "My sister lives in a small town by the sea.",
    "The server answers with an error after the last update.",
    "We planted tomatoes and beans in the garden.",
    "Could you write a short letter to the landlord?",
    "He bought a red bicycle for his daughter.",
    "The function returns a list of numbers.",
    "I do not like films that are too long.",
    "What is the best way to learn a language?",
    "The train to the airport leaves every twenty minutes.",
    "Please add two eggs and a little salt.",
)
OTHERS = (  # German, French, Spanish, Russian, Chinese, Japanese, Korean, Arabic, Portuguese, Italian, Turkish, Hindi
    "Unser Nachbar hat einen alten Hund.",
    "Die Rechnung muss bis Freitag bezahlt werden.",
    "Où as-tu mis les clés de la voiture ?",
    "Elle travaille dans un hôpital à la campagne.",
    "Mañana tengo una cita con el médico.",
    "El libro está sobre la mesa de la cocina.",
    "Поезд опоздал на сорок минут.",
    "Моя бабушка печёт очень вкусные пироги.",
    "明天下午我们一起去看电影吧。",
    "这个程序运行得太慢了。",
    "昨日、新しい靴を買いました。",
    "会議の資料を送ってください。",
    "우리 집 고양이는 생선을 좋아해요.",
    "여름에는 바다에 가고 싶어요.",
    "يعمل أخي مهندسا في شركة كبيرة.",
    "الطقس بارد جدا هذا الصباح.",
    "A minha mãe gosta de flores amarelas.",
    "Il gatto dorme sul divano.",
    "Annem her sabah çay içer.",
    "मुझे गर्म चाय पसंद है।",
)


class FastembedEncoder:
    """A loaded model, for questions or for passages. Thread-safe; the interpreter is free while it computes."""

    def __init__(self, model: EmbeddingModel, folder: Path, threads: int, *, for_questions: bool) -> None:
        """
        Load from a folder; nothing is fetched.

        Args:
            folder: holds `model.files`.
            threads: of one run, >= 1.
            for_questions: whether questions are embedded, which some models tell from passages.

        Raises:
            MemoryFault: the files are missing, damaged, or of another model.
        """
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # `threads` is all we may use
        doing = f"loading the embedding model {model.name} from {folder}"
        try:
            self._model = text_embedding()(
                model.name,
                threads=threads,
                providers=["CPUExecutionProvider"],
                specific_model_path=str(folder),
                enable_cpu_mem_arena=False,  # an arena keeps the memory of the largest batch for ever
            )
            self._before = model.before_question if for_questions else model.before_passage
            self._for_questions, self._dimensions = for_questions, model.dimensions
            reference = ENGLISH if model.languages.lower().startswith("english") else (*ENGLISH, *OTHERS)
            self._mean = np.zeros(model.dimensions, np.float32)
            self._mean = self.embed(reference).mean(0)  # of unit vectors with the prefix of this encoder
        except Exception as cause:  # the libraries raise whatever they like over a damaged file
            raise MemoryFault(f"{doing}: {cause}; delete the folder, and it is downloaded again") from cause
        if not np.isfinite(self._mean).all() or not self._mean.any():
            raise MemoryFault(f"{doing}: damaged; delete the folder, and it is downloaded again")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (n, dimensions), in the order of `texts`."""
        return embed_in_batches(texts, self._dimensions, self._run)

    def _run(self, texts: list[str]) -> Vectors:
        """Embed texts as unit vectors, with the mean of the model taken off."""
        given = [self._before + text for text in texts]
        embed = self._model.query_embed if self._for_questions else self._model.passage_embed
        vectors = np.array([*embed(given, batch_size=SLICE_TEXTS)], np.float32)
        return _unit(_unit(vectors) - self._mean)


def _unit(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), LEAST_LENGTH)
    return unit
