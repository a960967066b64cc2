import pytest
import torch
from scipy.stats import chisquare

from mcgrpo.data.sampling import InverseTransform, _rollouts

DRAWS = 200_000
LOGITS = torch.tensor([2.0, -torch.inf, 0.5, -1.0, 1.9, -6.0, 0.5, -torch.inf])


def drawn(logits):
    """A token of each row of logits, each of a prompt of its own."""
    rows = torch.arange(len(logits))
    return InverseTransform(rows.view(-1, 1))(logits, 1, rows)


@pytest.mark.parametrize("temperature", [1.0, 0.7, 2.0])
def test_tokens_come_with_the_probabilities_of_the_softmax(temperature):
    torch.manual_seed(0)
    logits = LOGITS / temperature
    counts = torch.bincount(drawn(logits.expand(DRAWS, -1)), minlength=len(logits))
    expected = logits.double().softmax(dim=0) * DRAWS
    assert (counts[expected == 0] == 0).all()
    possible = expected > 0
    assert chisquare(counts[possible], expected[possible]).pvalue > 0.001


def test_rows_are_drawn_by_their_own_logits():
    torch.manual_seed(0)
    certain = torch.eye(6).repeat(50, 1) * 200
    assert drawn(certain).equal(torch.arange(6).repeat(50))


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53])
def test_an_impossible_token_is_never_drawn(uniform, monkeypatch):
    """At both ends of the range of random numbers: the first and the last token have probability 0."""
    monkeypatch.setattr(torch, "rand", lambda size, dtype, generator: torch.full(size, uniform, dtype=dtype))
    logits = torch.tensor([[-torch.inf, 0.0, 1.0, -torch.inf]])
    assert drawn(logits).item() == (2 if uniform else 1)


def test_rare_tokens_are_not_lost(monkeypatch):
    """After one token of probability 0.999, 100,000 that share the rest: half of it is passed at the middle one."""
    monkeypatch.setattr(torch, "rand", lambda size, dtype, generator: torch.full(size, 0.9995, dtype=dtype))
    rare = 100_000
    logits = torch.cat([torch.tensor([0.999]), torch.full((rare,), 0.001 / rare)]).log()
    assert drawn(logits[None]).item() == pytest.approx(rare / 2, rel=0.001)


def test_half_precision_is_sampled_in_its_own_dtype():
    torch.manual_seed(0)
    counts = torch.bincount(drawn(torch.tensor([0.0, 1.0, 2.0], dtype=torch.bfloat16).expand(20_000, -1)))
    assert chisquare(counts, torch.tensor([0.0, 1.0, 2.0]).softmax(dim=0) * 20_000).pvalue > 0.001


def rollouts(prompts, per_prompt, steps=5):
    """(prompts, rollouts, steps) tokens, drawn from one distribution."""
    given = prompts.repeat_interleave(per_prompt, dim=0)
    draw, rows = InverseTransform(given), torch.arange(len(given))
    tokens = [draw(LOGITS.expand(len(given), -1), length, rows) for length in range(steps)]
    return torch.stack(tokens, dim=1).view(len(prompts), per_prompt, steps)


def test_rollouts_are_the_same_however_many_follow_them():
    """And so is what is drawn after them, by whatever uses torch's random numbers."""
    prompts, found = torch.arange(300).view(100, 3), {}
    for per_prompt in (2, 3, 9):
        torch.manual_seed(0)
        found[per_prompt] = rollouts(prompts, per_prompt), torch.rand(1)
    (two, after_two), (three, after_three), (nine, after_nine) = found.values()
    assert two.equal(three[:, :2]) and three.equal(nine[:, :3])
    assert after_two == after_three == after_nine


def test_rollouts_of_a_prompt_prompts_steps_and_calls_are_independent():
    """The share of equal tokens is that of independent draws, whichever two are compared."""
    torch.manual_seed(0)
    prompts = torch.arange(20_000).view(-1, 1)
    first, again = rollouts(prompts, 2), rollouts(prompts, 2)
    expected = float(LOGITS.double().softmax(dim=0).square().sum())
    for one, other in (
        (first[:, 0], first[:, 1]), (first[1:], first[:-1]), (first[..., 1:], first[..., :-1]), (first, again)
    ):  # fmt: skip
        assert float((one == other).double().mean()) == pytest.approx(expected, abs=0.01)


def test_rows_that_are_left_out_do_not_change_the_others():
    torch.manual_seed(0)
    draw, some = InverseTransform(torch.arange(30).view(-1, 1)), torch.tensor([3, 7, 29])
    assert draw(LOGITS.expand(3, -1), 5, some).equal(draw(LOGITS.expand(30, -1), 5, torch.arange(30))[some])


def test_prompts_of_several_rollouts_each_are_found_wherever_they_stand():
    """A prompt may come again later, and the last group may be short."""
    prompts = torch.tensor([[1, 7], [1, 7], [2, 7], [1, 7], [1, 7], [1, 7]])
    rollout, prompt = _rollouts(prompts)
    assert rollout.tolist() == [0, 1, 0, 0, 1, 2] and prompt.tolist() == [0, 0, 1, 2, 2, 2]
