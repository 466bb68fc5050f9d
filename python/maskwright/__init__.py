"""Grammar-constrained decoding: make a language model's output match a grammar, always.

    >>> import maskwright
    >>> compiler = maskwright.Compiler(maskwright.Vocabulary.single_bytes())
    >>> matcher = compiler.regex("[ab]{2}").matcher()
    >>> matcher.mask().ids()
    [97, 98]
    >>> matcher.commit([97, 98])
    >>> matcher.is_complete()
    True

Hosts have modules of their own, which import the host when they are imported themselves: `maskwright.transformers`,
`maskwright.mlx`, `maskwright.llama_cpp`, `maskwright.vllm`, `maskwright.sglang`. Nothing else is needed to install this
package.
"""

from maskwright._errors import (
    BusyError,
    CancelledError,
    ConstraintError,
    InternalError,
    LimitError,
    MaskwrightError,
    NotFoundError,
    RequestError,
    UnsupportedError,
)
from maskwright._logits import apply_mask, apply_mask_
from maskwright._maskwright import (
    LLM,
    Canceller,
    ChatFormat,
    Compiled,
    Compiler,
    Constraint,
    Delta,
    Event,
    Matcher,
    Reply,
    ReplyParser,
    Stream,
    TokenMask,
    ToolCall,
    Vocabulary,
    fill_masks,
)
from maskwright._schema import json_schema_of

__all__ = [
    "LLM",
    "BusyError",
    "CancelledError",
    "Canceller",
    "ChatFormat",
    "Compiled",
    "Compiler",
    "Constraint",
    "ConstraintError",
    "Delta",
    "Event",
    "InternalError",
    "LimitError",
    "MaskwrightError",
    "Matcher",
    "NotFoundError",
    "Reply",
    "ReplyParser",
    "RequestError",
    "Stream",
    "TokenMask",
    "ToolCall",
    "UnsupportedError",
    "Vocabulary",
    "apply_mask",
    "apply_mask_",
    "fill_masks",
    "json_schema_of",
]
