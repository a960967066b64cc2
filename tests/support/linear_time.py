import time


def is_linear(read, piece, characters):
    """Whether `read` takes eight times the text in less than 24 times the processor time: 8 if linear, 64 if quadratic.

    A ratio, as a bound in seconds fails on a slow machine. The long text is read again if it took too long.
    """
    short, long = ((piece * (size // len(piece) + 1))[:size] for size in (characters // 8, characters))
    least = min(_seconds(read, short) for _ in range(3))
    return any(_seconds(read, long) < 24 * least for _ in range(3))


def _seconds(read, text):
    start = time.thread_time()
    read(text)
    return time.thread_time() - start
