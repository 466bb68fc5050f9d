import threading
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

from maskwright import CancelledError, Compiled, Compiler, Matcher, RequestError, fill_masks

B = list(b"ab")


@pytest.fixture
def compiled(bytes_compiler: Compiler) -> Compiled:
    return bytes_compiler.regex("[ab]{3}")


def test_a_matcher_is_followed_token_by_token(compiled: Compiled) -> None:
    matcher = compiled.matcher()
    assert matcher.mask().ids() == B
    assert matcher.accepts([*B, *B]) == 3
    matcher.commit(97)
    matcher.commit([97, 98])
    assert matcher.tokens == [97, 97, 98]
    assert matcher.is_accepting()
    assert matcher.is_complete()
    assert not matcher.has_ended()
    assert matcher.mask() == compiled.stop_mask
    matcher.commit(256)
    assert matcher.has_ended()
    matcher.rollback(3)
    assert matcher.tokens == [97]
    assert matcher.mask().ids() == B


def test_a_token_that_isnt_allowed_changes_nothing(compiled: Compiled) -> None:
    matcher = compiled.matcher()
    with pytest.raises(RequestError, match=r"token 99 \(number 1"):
        matcher.commit([97, 99])
    assert matcher.tokens == []
    with pytest.raises(RequestError, match="can't take back 1 tokens of 0"):
        matcher.rollback(1)
    assert matcher.mask().count() == 2


def test_forced_tokens_are_told_and_not_taken(bytes_compiler: Compiler) -> None:
    matcher = bytes_compiler.choice(["yes", "no"]).matcher()
    assert matcher.forced() == []
    matcher.commit(ord("y"))
    assert bytes(matcher.forced()) == b"es"
    assert matcher.tokens == [ord("y")]
    assert matcher.mask().only() == ord("e")


def test_a_fork_goes_its_own_way(compiled: Compiled) -> None:
    matcher = compiled.matcher()
    matcher.commit(97)
    fork = matcher.fork()
    fork.commit([98, 98])
    assert (matcher.tokens, fork.tokens) == ([97], [97, 98, 98])


def test_following_takes_back_what_isnt_there_any_more(compiled: Compiled) -> None:
    matcher = compiled.matcher()
    assert matcher.follow([97, 98]) == 2
    assert matcher.follow([97, 97, 98, 256]) == 4
    # Nothing after the end is looked at.
    assert matcher.follow([97, 97, 98, 256, 5, 6]) == 4
    assert matcher.has_ended()
    assert matcher.follow([97]) == 1
    assert matcher.follow([97, 99, 97]) == 1
    assert matcher.tokens == [97]
    assert matcher.follow([]) == 0


def test_a_cancelled_matcher_fails(compiled: Compiled) -> None:
    matcher = compiled.matcher()
    canceller = matcher.canceller()
    canceller.cancel()
    assert canceller.is_cancelled()
    with pytest.raises(CancelledError):
        matcher.mask()


def test_masks_are_written_into_rows(bytes_compiler: Compiler, compiled: Compiled) -> None:
    words = compiled.mask_words
    assert words == 9
    out = numpy.full((3, words + 1), -1, dtype=numpy.int32)
    matcher = compiled.matcher()
    matcher.fill_mask(out, 1)
    expected = numpy.zeros(words + 1, dtype=numpy.int32)
    expected[3] = 6
    assert (out[1] == expected).all()
    assert (out[[0, 2]] == -1).all()
    matcher.mask().write(out, 2)
    assert (out[2] == expected).all()
    one = numpy.empty(words, dtype=numpy.int32)
    matcher.fill_mask(one)
    assert (one == expected[:-1]).all()


def test_arrays_that_cant_hold_a_mask_are_refused(compiled: Compiled) -> None:
    matcher = compiled.matcher()
    words = compiled.mask_words
    cases = [
        (numpy.zeros(words - 1, dtype=numpy.int32), 0, ValueError),
        (numpy.zeros((2, words), dtype=numpy.int32), 2, IndexError),
        (numpy.zeros((1, 1, words), dtype=numpy.int32), 0, ValueError),
        (numpy.zeros((2, 2 * words), dtype=numpy.int32)[:, ::2], 0, ValueError),
        (numpy.zeros(words, dtype=numpy.int64), 0, (BufferError, TypeError)),
        ([0] * words, 0, TypeError),
        (bytes(4 * words), 0, (BufferError, TypeError, ValueError)),
    ]
    for out, row, error in cases:
        with pytest.raises(error):
            matcher.fill_mask(out, row)


def test_many_masks_are_filled_at_once(bytes_compiler: Compiler) -> None:
    compiled = [bytes_compiler.regex(f"[a-z]{{{n}}}[0-9]{{3}}") for n in range(1, 9)]
    matchers = [one.matcher() for one in compiled for _ in range(3)]
    for index, matcher in enumerate(matchers):
        matcher.commit([97] * (index % 2))
    out = numpy.empty((len(matchers), 9), dtype=numpy.int32)
    fill_masks(matchers, out)
    single = numpy.empty(9, dtype=numpy.int32)
    for index, matcher in enumerate(matchers):
        matcher.fill_mask(single)
        assert (single == out[index]).all()
    rows = list(range(len(matchers)))[::-1]
    reversed_rows = numpy.empty_like(out)
    fill_masks(matchers, reversed_rows, rows)
    assert (reversed_rows[::-1] == out).all()
    fill_masks([], out)


def test_filling_many_refuses_what_makes_no_sense(compiled: Compiled) -> None:
    matcher = compiled.matcher()
    out = numpy.zeros((2, 9), dtype=numpy.int32)
    with pytest.raises(ValueError, match="given twice"):
        fill_masks([matcher, matcher], out)
    with pytest.raises(IndexError):
        fill_masks([matcher], out, [2])
    with pytest.raises(ValueError, match="1 matchers, but 2 rows"):
        fill_masks([matcher], out, [0, 1])
    broken = compiled.matcher()
    broken.canceller().cancel()
    with pytest.raises(CancelledError, match="row 1"):
        fill_masks([matcher, broken], out)
    # The others are filled all the same.
    assert out[0].any()


def test_threads_share_a_constraint(qwen3_compiler: Compiler) -> None:
    schema = {"type": "array", "items": {"type": "string", "maxLength": 6}, "minItems": 2, "maxItems": 4}
    compiled = qwen3_compiler.json_schema(schema)

    def walk(seed: int) -> list[int]:
        import random

        draw = random.Random(seed)
        matcher = compiled.matcher()
        out = numpy.empty(compiled.mask_words, dtype=numpy.int32)
        counts = []
        while not matcher.has_ended():
            matcher.fill_mask(out)
            mask = matcher.mask()
            counts.append(mask.count())
            assert numpy.bitwise_count(out.view(numpy.uint32)).sum() == mask.count()
            matcher.commit(draw.choice(mask.ids()))
        return counts

    alone = [walk(seed) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(walk, range(8))) == alone


def test_one_matcher_may_be_used_by_many_threads(compiled: Compiled) -> None:
    matcher = compiled.matcher()
    barrier = threading.Barrier(4)
    failures: list[BaseException] = []

    def work(other: Matcher) -> None:
        out = numpy.empty((2, 9), dtype=numpy.int32)
        barrier.wait()
        try:
            for step in range(300):
                # Threads name the two in either order.
                fill_masks([matcher, other] if step % 2 else [other, matcher], out)
                matcher.follow([97] * (step % 4))
                matcher.mask()
        except BaseException as failure:
            failures.append(failure)

    shared = compiled.matcher()
    threads = [threading.Thread(target=work, args=(shared,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
