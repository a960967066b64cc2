"""A vLLM plugin, loaded by every engine: its CPU backend in fp32, with weights that a trainer can replace.

vLLM 0.31 repacks the weights of linear layers on a CPU and drops the parameters, so that no weight can be synchronized;
and it takes an fp32 model in bf16, too coarse to compare with transformers token by token.
"""


def register():
    """Called by vLLM before a model's config is read; more than once does no harm."""
    import torch
    from vllm.model_executor.layers import utils
    from vllm.platforms import current_platform

    utils.dispatch_cpu_unquantized_gemm = plain_linear
    type(current_platform).supported_dtypes = property(lambda self: [torch.float32])


def plain_linear(layer, remove_weight):
    """Let a layer compute with the weight that it has."""
    from torch.nn.functional import linear

    layer.cpu_linear = linear
