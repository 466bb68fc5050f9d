"""Engines of other projects behind one interface, as their own users call them.

An engine has `about` and `compile(schema) -> template`; a template has `open() -> session`; a session has `mask()`,
`allows(token)`, `commit(token)`, and `timed`, false where the last step isn't one to time. Whatever they raise in
`compile` is a refusal of the schema, in a step a failure of the instance.
"""

import ctypes
import importlib.metadata
import json
import os
import sys
import tempfile
import types

STOP = ("<|eot_id|>", "<|end_of_text|>", "<|im_end|>", "<|endoftext|>", "</s>", "<|return|>")


class Tokenizer:
    """What engines need of a byte-level tokenizer.json."""

    def __init__(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.json = json.loads(self.text)
        vocab = dict(self.json["model"]["vocab"])
        self.special = set()
        for token in self.json["added_tokens"]:
            vocab[token["content"]] = token["id"]
            self.special.add(token["id"])
        self.size = max(vocab.values()) + 1
        self.words = [""] * self.size
        for word, token in vocab.items():
            self.words[token] = word
        self.stop = [vocab[word] for word in STOP if word in vocab]
        bytes_of = {char: byte for byte, char in byte_letters().items()}
        if any(char not in bytes_of for word in self.json["model"]["vocab"] for char in word):
            raise SystemExit(f"{path}: not a byte-level tokenizer")
        self.bytes = [
            word.encode() if token in self.special else bytes(bytes_of[char] for char in word)
            for token, word in enumerate(self.words)
        ]


def byte_letters() -> dict:
    """The letters that byte-level tokenizers write bytes with, as GPT-2 began it."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + n) for n, byte in enumerate(others)}


def version(package: str) -> str:
    return f"{package} {importlib.metadata.version(package)}"


class Bits:
    """A mask of packed bits."""

    timed = True

    def __init__(self, size: int) -> None:
        import numpy

        self.bits = numpy.zeros((1, (size + 31) // 32), dtype=numpy.int32)

    def allows(self, token: int) -> bool:
        return bool(int(self.bits[0, token >> 5]) >> (token & 31) & 1)


class XGrammar:
    """xgrammar; `any_whitespace` and `strict_mode` as MaskBench's runner sets them."""

    def __init__(self, path: str, compliant: bool) -> None:
        without = stand_in()
        import xgrammar

        tokenizer = Tokenizer(path)
        self.compliant, self.size = compliant, tokenizer.size
        info = xgrammar.TokenizerInfo(
            tokenizer.words,
            vocab_type=xgrammar.VocabType.BYTE_LEVEL,
            vocab_size=tokenizer.size,
            stop_token_ids=tokenizer.stop,
        )
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        self.matcher = xgrammar.GrammarMatcher
        self.about = f"{version('xgrammar')}, any_whitespace={compliant}, strict_mode={not compliant}{without}"

    def compile(self, schema):
        text = json.dumps(schema)
        compiled = self.compiler.compile_json_schema(
            text, any_whitespace=self.compliant, strict_mode=not self.compliant
        )
        return XGrammarTemplate(self, compiled)


class XGrammarTemplate:
    def __init__(self, engine: XGrammar, compiled) -> None:
        self.engine, self.compiled = engine, compiled

    def open(self):
        return XGrammarSession(self.engine.size, self.engine.matcher(self.compiled))


class XGrammarSession(Bits):
    def __init__(self, size: int, matcher) -> None:
        super().__init__(size)
        self.matcher = matcher

    def mask(self) -> None:
        # False says that the mask would be full, and then it isn't always written.
        if not self.matcher.fill_next_token_bitmask(self.bits):
            self.bits.fill(-1)

    def commit(self, token: int) -> None:
        if not self.matcher.accept_token(token):
            raise RuntimeError("a token of its mask isn't accepted")


def stand_in() -> str:
    """Puts something in the place of torch and transformers where they aren't installed; in words.

    xgrammar imports both, and needs neither for what is measured: masks are numpy arrays, and the vocabulary is
    given to it as a list.
    """
    import importlib.util

    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if "torch" in missing:
        # It looks for torch itself, and would take what stands in for the real one.
        import tvm_ffi  # noqa: F401

    class Module(types.ModuleType):
        def __getattr__(self, name: str):
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {"__init__": lambda self, *_, **__: None})

    for name in missing:
        sys.modules[name] = Module(name)
    return f", with stand-ins for {' and '.join(missing)}" if missing else ""


class Outlines:
    """outlines-core: a schema becomes a regular expression, and that an index over the vocabulary."""

    def __init__(self, path: str) -> None:
        import outlines_core
        from outlines_core import json_schema

        tokenizer = Tokenizer(path)
        self.size = tokenizer.size
        tokens: dict = {}
        for token, word in enumerate(tokenizer.bytes):
            if token not in tokenizer.special and word:
                tokens.setdefault(word, []).append(token)
        self.vocabulary = outlines_core.Vocabulary(tokenizer.stop[0], tokens)
        self.index, self.guide, self.schema = outlines_core.Index, outlines_core.Guide, json_schema
        self.about = version("outlines_core")

    def compile(self, schema):
        regex = self.schema.build_regex_from_schema(json.dumps(schema))
        return OutlinesTemplate(self, self.index(regex, self.vocabulary))


class OutlinesTemplate:
    def __init__(self, engine: Outlines, index) -> None:
        self.engine, self.index = engine, index

    def open(self):
        return OutlinesSession(self.engine.size, self.engine.guide(self.index))


class OutlinesSession(Bits):
    def __init__(self, size: int, guide) -> None:
        super().__init__(size)
        self.guide = guide
        self.place = (self.bits.ctypes.data, self.bits.size, self.bits.itemsize)

    def mask(self) -> None:
        self.guide.write_mask_into(*self.place)

    def commit(self, token: int) -> None:
        self.guide.advance(token, False)


class FormatEnforcer:
    """lm-format-enforcer: a character-level parser in Python. Its mask is a list of tokens."""

    def __init__(self, path: str) -> None:
        import lmformatenforcer
        import tokenizers
        from lmformatenforcer.tokenenforcer import TokenEnforcer, TokenEnforcerTokenizerData

        ours = Tokenizer(path)
        theirs = tokenizers.Tokenizer.from_str(ours.text)
        decode = lambda ids: theirs.decode(ids, skip_special_tokens=False)  # noqa: E731
        zero = theirs.encode("0", add_special_tokens=False).ids[-1]
        regular = []
        for token in range(ours.size):
            if token not in ours.special:
                # As its own integrations do it.
                after, alone = decode([zero, token])[1:], decode([token])
                regular.append((token, after, len(after) > len(alone)))
        self.data = TokenEnforcerTokenizerData(
            regular, lambda ids: decode(ids).rstrip("\ufffd"), ours.stop, False, ours.size
        )
        self.parser, self.enforcer = lmformatenforcer.JsonSchemaParser, TokenEnforcer
        self.about = version("lm-format-enforcer")

    def compile(self, schema):
        return FormatEnforcerTemplate(self.enforcer(self.data, self.parser(schema)))


class FormatEnforcerTemplate:
    def __init__(self, enforcer) -> None:
        self.enforcer = enforcer

    def open(self):
        return FormatEnforcerSession(self.enforcer)


class FormatEnforcerSession:
    timed = True

    def __init__(self, enforcer) -> None:
        self.enforcer, self.tokens, self.allowed = enforcer, [], None

    def mask(self) -> None:
        self.allowed = self.enforcer.get_allowed_tokens(self.tokens)

    def allows(self, token: int) -> bool:
        return self.allowed.is_token_allowed(token)

    def commit(self, token: int) -> None:
        self.tokens = [*self.tokens, token]


class LlamaCpp:
    """llama.cpp's grammar sampler, on what llama-cpp-python makes of the schema.

    It has no mask. What does the same is to apply the sampler to all candidates, which takes tens of milliseconds on a
    large vocabulary; so only each `EVERY`-th step does that and is timed, the others ask for the one token.
    """

    EVERY = 32

    def __init__(self, path: str) -> None:
        import llama_cpp
        from llama_cpp.llama_grammar import json_schema_to_gbnf

        self.lib, self.to_gbnf = llama_cpp, json_schema_to_gbnf
        self.log = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self.log, None)
        tokenizer = Tokenizer(path)
        self.size = tokenizer.size
        with tempfile.TemporaryDirectory() as scratch:
            file = os.path.join(scratch, "vocabulary.gguf")
            vocabulary_file(tokenizer, file)
            self.model = llama_cpp.Llama(file, vocab_only=True, verbose=False)
        self.vocab = llama_cpp.llama_model_get_vocab(self.model.model)
        self.all = (llama_cpp.llama_token_data * self.size)()
        for token in range(self.size):
            self.all[token].id = token
        self.pristine = bytes(self.all)
        self.about = f"{version('llama-cpp-python')}, masks timed each {self.EVERY}th step"

    def compile(self, schema):
        template = LlamaCppTemplate(self, self.to_gbnf(json.dumps(schema)).encode())
        # A grammar that llama.cpp can't read is refused here.
        template.open()
        return template


class LlamaCppTemplate:
    def __init__(self, engine: LlamaCpp, grammar: bytes) -> None:
        self.engine, self.grammar = engine, grammar

    def open(self):
        return LlamaCppSession(self.engine, self.grammar)


class LlamaCppSession:
    def __init__(self, engine: LlamaCpp, grammar: bytes) -> None:
        self.engine, self.lib, self.step = engine, engine.lib, 0
        self.sampler = self.lib.llama_sampler_init_grammar(engine.vocab, grammar, b"root")
        if not self.sampler:
            raise ValueError("llama.cpp can't read the grammar")
        self.one = (self.lib.llama_token_data * 1)()

    def __del__(self) -> None:
        if getattr(self, "sampler", None):
            self.lib.llama_sampler_free(self.sampler)

    @property
    def timed(self) -> bool:
        return self.step % self.engine.EVERY == 0

    def mask(self) -> None:
        if self.timed:
            ctypes.memmove(self.engine.all, self.engine.pristine, len(self.engine.pristine))
            self.apply(self.engine.all, self.engine.size)

    def apply(self, data, size: int) -> None:
        array = self.lib.llama_token_data_array(data=data, size=size, selected=-1, sorted=False)
        self.lib.llama_sampler_apply(self.sampler, ctypes.byref(array))

    def allows(self, token: int) -> bool:
        self.one[0].id, self.one[0].logit = token, 0.0
        self.apply(self.one, 1)
        return self.one[0].logit == 0.0

    def commit(self, token: int) -> None:
        self.lib.llama_sampler_accept(self.sampler, token)
        self.step += 1


def vocabulary_file(tokenizer: Tokenizer, path: str) -> None:
    """A GGUF file with a vocabulary and nothing else."""
    import gguf

    merges = tokenizer.json["model"]["merges"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(tokenizer.words)
    writer.add_token_types([3 if token in tokenizer.special else 1 for token in range(tokenizer.size)])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in merges])
    writer.add_eos_token_id(tokenizer.stop[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


ENGINES = {
    "xgrammar": lambda path: XGrammar(path, compliant=False),
    "xgrammar-compliant": lambda path: XGrammar(path, compliant=True),
    "outlines-core": Outlines,
    "lm-format-enforcer": FormatEnforcer,
    "llama.cpp": LlamaCpp,
}
