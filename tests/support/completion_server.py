"""A server of completions with scripted answers, and what goes with it: a tool, an environment, rewards."""

import json
import re
from collections import Counter
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread

import trl

from mcgrpo.data.toy.tokenizer import byte_tokenizer

CALL = '<tool_call>\n{{"name": "add", "arguments": {{"number": {}}}}}\n</tool_call>'
QUESTIONS = [{"prompt": [{"role": "user", "content": f"Question {number}?"}], "answer": number} for number in range(3)]


@cache
def chat_tokenizer():
    """Bytes, with Qwen 3's template: TRL knows how tool calls are written in it."""
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = Path(trl.__file__).with_name("chat_templates").joinpath("qwen3.jinja").read_text()
    return tokenizer


class Environment:
    """A counter: the task is in what `reset` returns, the reward is where it stands."""

    def reset(self, answer, **row):
        """Start from 0; returns the observation."""
        self.total = 0
        return f" Start from {answer}."

    def add(self, number: int) -> int:
        """
        Add to the counter.

        Args:
            number: what to add.

        Returns:
            Where it stands.
        """
        self.total += number
        return self.total

    def get_reward(self):
        """Where it stands."""
        return float(self.total)


def add(number: int) -> int:
    """
    Add nothing to a number.

    Args:
        number: the number.

    Returns:
        The same number.
    """
    return number


def digit_reward(completions, **columns):
    """The first digit of the last message."""
    return [float(re.search(r"\d", completion[-1]["content"])[0]) for completion in completions]


def answers(prompt, count, calls):
    """The answer to a prompt that was asked `count` times before: 0 to 4 in turn, with `calls` by way of the tool."""
    if calls and "<tool_response>" not in prompt:
        return CALL.format(count % 5)
    said = re.findall(r"<tool_response>\n(\d+)", prompt)
    return f"It is {said[-1] if said else count % 5}, number {count}."


@contextmanager
def serving(calls=False):
    """The address of a server that answers `/v1/completions` as vLLM does, with all log-probabilities -1."""
    tokenizer, asked, lock = chat_tokenizer(), Counter(), Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt = tokenizer.decode(request["prompt"])
            with lock:
                ids = tokenizer(answers(prompt, asked[prompt], calls) + "<|im_end|>")["input_ids"]
                asked[prompt] += 1
            choice = {"token_ids": ids, "logprobs": {"token_logprobs": [-1.0] * len(ids)}}
            body = json.dumps({"choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
