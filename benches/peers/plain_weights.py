"""Keeps llama.cpp from laying its weights out anew for the processor, which it does for speed. Where a virtual machine shows
AMX instructions and doesn't allow them, a build that uses them crashes (llama-cpp-python 0.3.36)."""

import llama_cpp


def use() -> None:
    defaults = llama_cpp.llama_model_default_params

    def plain():
        params = defaults()
        params.use_extra_bufts = False
        return params

    llama_cpp.llama_cpp.llama_model_default_params = plain
