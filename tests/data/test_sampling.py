import pytest
import torch
from scipy.stats import chisquare
from transformers import TemperatureLogitsWarper, TopPLogitsWarper

from mcgrpo.data.sampling import sampling

DRAWS = 200_000
LOGITS = torch.tensor([2.0, -torch.inf, 0.5, -1.0, 1.9, -6.0, 0.5, -torch.inf])


def drawn(logits, temperature=1.0, top_p=1.0):
    """The token that is left of each row."""
    prompts = torch.zeros(len(logits), 1, dtype=torch.long)
    left = sampling(temperature, top_p)(prompts, logits)
    assert left.dtype == logits.dtype
    assert ((left == 0).sum(dim=1) == 1).all() and ((left == 0) | (left == -torch.inf)).all()
    return left.argmax(dim=1)


def warped(temperature, top_p):
    """The probabilities by which transformers samples with these settings."""
    scores = TemperatureLogitsWarper(temperature)(None, LOGITS[None])
    return TopPLogitsWarper(top_p)(None, scores)[0].double().softmax(dim=0)


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.7, 1.0), (2.0, 1.0), (1.0, 0.8), (0.6, 0.95)])
def test_tokens_come_with_the_probabilities_of_transformers(temperature, top_p):
    torch.manual_seed(0)
    counts = torch.bincount(drawn(LOGITS.expand(DRAWS, -1), temperature, top_p), minlength=len(LOGITS))
    expected = warped(temperature, top_p) * DRAWS
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
    monkeypatch.setattr(torch, "rand", lambda *size, dtype, device: torch.full(size, uniform, dtype=dtype))
    logits = torch.tensor([[-torch.inf, 0.0, 1.0, -torch.inf]])
    assert drawn(logits).item() == (2 if uniform else 1)


def test_rare_tokens_are_not_lost(monkeypatch):
    """After one token of probability 0.999, 100,000 that share the rest: half of it is passed at the middle one."""
    monkeypatch.setattr(torch, "rand", lambda *size, dtype, device: torch.full(size, 0.9995, dtype=dtype))
    rare = 100_000
    logits = torch.cat([torch.tensor([0.999]), torch.full((rare,), 0.001 / rare)]).log()
    assert drawn(logits[None]).item() == pytest.approx(rare / 2, rel=0.001)


def test_half_precision_is_sampled_in_its_own_dtype():
    torch.manual_seed(0)
    counts = torch.bincount(drawn(torch.tensor([0.0, 1.0, 2.0], dtype=torch.bfloat16).expand(20_000, -1)))
    assert chisquare(counts, torch.tensor([0.0, 1.0, 2.0]).softmax(dim=0) * 20_000).pvalue > 0.001
