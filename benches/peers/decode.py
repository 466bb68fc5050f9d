"""Decode and prefill speed of llama.cpp on the model and prompt of `benches/decode.rs`, to set beside it.

Needs llama-cpp-python (a C++ compiler builds it): `pip install llama-cpp-python`, then
`python benches/peers/decode.py MODEL.gguf [ROUNDS] [THREADS]`.
"""

import statistics
import sys
import time

import llama_cpp

PROMPT = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\nWrite a long story about Ada Lovelace.<|im_end|>\n<|im_start|>assistant\n"
)
TOKENS = 48
PREFILL = 128


def main() -> None:
    path = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    threads = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    model = llama_cpp.Llama(path, n_ctx=1024, n_threads=threads, n_threads_batch=threads, verbose=False)
    prompt = model.tokenize(PROMPT.encode(), add_bos=False, special=True)
    long = (prompt * 8)[:PREFILL]
    decode, prefill = [], []
    for round_number in range(rounds + 1):
        model.reset()
        model.eval(prompt)
        start = time.perf_counter()
        for _ in range(TOKENS):
            model.eval([model.sample(temp=0.0)])
        decoded = TOKENS / (time.perf_counter() - start)
        model.reset()
        start = time.perf_counter()
        model.eval(long)
        read = PREFILL / (time.perf_counter() - start)
        if round_number > 0:  # the first round warms caches
            decode.append(decoded)
            prefill.append(read)
    print(f"llama-cpp-python {llama_cpp.__version__}, {threads} thread(s), {rounds} rounds, medians")
    print(f"decode {statistics.median(decode):.1f} tokens/s, prefill of {PREFILL} {statistics.median(prefill):.1f} tokens/s")


if __name__ == "__main__":
    main()
