"""Templates: what some well-known uses put in the place of source, memory and target.

Needs no torch, so a page can offer them before it is loaded.
"""

from dataclasses import dataclass

IMAGE_SIDE, CHANNELS = 224, 3  # pixels, and numbers a pixel
PATCH_SIDES = (16, 28, 32, 56)  # pixels; each divides the side of the image


@dataclass(frozen=True)
class Template:
    """One use of the stack, with an example.

    Attributes:
        key: Its name where there is no room for words, as in an address.
        source: What the encoder reads.
        target: What the decoder writes.
        memory: What the vectors of the memory stand for.
        source_text: The source of the example, a space between tokens; of an image's
            template the question, which follows the patches.
        target_text: The target of the example, likewise.
        has_image: Whether patches of an image come first in the source.
        drops_first: Whether the first tokens go where the source is shortened; else
            the last ones do.
    """

    key: str
    source: str
    target: str
    memory: str
    source_text: str
    target_text: str
    has_image: bool = False
    drops_first: bool = False

    @property
    def source_tokens(self) -> tuple[str, ...]:
        """The words of the example's source."""
        return tuple(self.source_text.split())

    @property
    def target_tokens(self) -> tuple[str, ...]:
        """The words of the example's target."""
        return tuple(self.target_text.split())

    @property
    def words(self) -> tuple[str, ...]:
        """All words of the example, each once: the vocabulary's own tokens."""
        return tuple(sorted({*self.source_tokens, *self.target_tokens}))


TEMPLATES = {
    "Translation": Template(
        key="translation",
        source="the sentence in German",
        target="the sentence in English",
        memory="one vector for each German word",
        source_text="Der alte Hund schlief den ganzen Tag , weil es draußen regnete .",
        target_text="The old dog slept all day because it rained .",
    ),
    "Chat": Template(
        key="chat",
        source="the conversation so far",
        target="the reply",
        memory="one vector for each token said so far",
        source_text="user : my parcel has not come . bot : which number is on the "
        "label ? user : 4711 .",
        target_text="thank you . it is at the post office in your street .",
        drops_first=True,
    ),
    "Facts and question": Template(
        key="facts",
        source="the facts, then the question",
        target="the answer",
        memory="one vector for each token of facts and question",
        source_text="Mary went to the garden . John took the milk . John went to the "
        "kitchen . Where is the milk ?",
        target_text="in the kitchen .",
        drops_first=True,
    ),
    "Image and question": Template(
        key="image",
        source="the patches, then the question",
        target="the answer",
        memory="one vector for each patch and each word",
        source_text="how many dogs are on the red sofa ?",
        target_text="two , a large one and a small one .",
        has_image=True,
    ),
}
