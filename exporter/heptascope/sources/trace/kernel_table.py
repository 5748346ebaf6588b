"""The one table that says what a GPU kernel does, by its name.

Rows are tried from the top; the first that has a word found anywhere in the name wins, letter case aside. The words
of a row are regular expressions, separated by spaces. Names are those that the libraries give their kernels, as seen
in traces and in their public sources.
"""

from __future__ import annotations

from enum import StrEnum


class KernelClass(StrEnum):
    """What the time went to."""

    ATTENTION_PREFILL = "attention_prefill"
    ATTENTION_DECODE = "attention_decode"
    ATTENTION = "attention"  # prefill and decode in one kernel, or not to be told apart
    GEMM = "gemm"
    MOE = "moe"
    NORM_ELEMENTWISE = "norm_elementwise"
    SAMPLING = "sampling"
    COPY = "copy"
    COLLECTIVE = "collective"
    OTHER = "other"


_K = KernelClass
TABLE: tuple[tuple[KernelClass, str, str], ...] = (
    # copies that the driver names
    (
        _K.COPY,
        "CUDA, HIP",
        r"^mem(cpy|set)[\s_(]|^copy(host|device)to|^fillbuffer",
    ),
    # what Inductor fused: its names list the fused operations, whose words must not decide
    (
        _K.NORM_ELEMENTWISE,
        "Triton, Inductor",
        r"^triton_(poi|red|per|for)_",
    ),
    # collectives
    (
        _K.COLLECTIVE,
        "NCCL, RCCL",
        r"\bnccl(dev)?kernel ^nccl ^rccl mscclKernel",
    ),
    (
        _K.COLLECTIVE,
        "vLLM, SGLang",
        r"cross_device_reduce custom_all_?reduce quick_?reduce allreduce_prototype pynccl",
    ),
    (
        _K.COLLECTIVE,
        "TensorRT-LLM, FlashInfer",
        r"all_?reduce_?fusion (one|two)_?shot_?all_?reduce lamport userbuffers moe_?all_?reduce mnnvl",
    ),
    (
        _K.COLLECTIVE,
        "PyTorch symmetric memory",
        r"(one|two)_shot_ multimem_(one_shot|all) symm_mem stream_write_value32",
    ),
    (
        _K.COLLECTIVE,
        "NVSHMEM, DeepEP, pplx",
        r"nvshmem deep_ep:: internode:: intranode:: low_latency::(dispatch|combine) all_?to_?all all_?gather_into",
    ),
    # mixture of experts, before GEMM: its matrix products are named for it
    (
        _K.MOE,
        "vLLM, SGLang",
        r"fused_moe moe_align moe_sum topk_gating topkgating grouped_topk moe_wna16 marlin_moe ep_(gather|scatter) "
        r"permute_kernel (count_and_sort|shuffle)_(expert|rows)",
    ),
    (
        _K.MOE,
        "TensorRT-LLM, FlashInfer",
        r"expand(input)?rows finalizemoe moe:: bmm_.*routing routingindices routingcustom trtllm_gen_moe",
    ),
    (
        _K.MOE,
        "grouped GEMM",
        r"grouped_?gemm group_?gemm groupproblemshape \bmoe_ _moe_ moekernel",
    ),
    # attention
    (
        _K.ATTENTION_DECODE,
        "FlashInfer",
        r"batch_?decode single_?decode decodekernel",
    ),
    (
        _K.ATTENTION_PREFILL,
        "FlashInfer",
        r"batch_?prefill single_?prefill prefillwith ragged_?prefill",
    ),
    (
        _K.ATTENTION_DECODE,
        "FlashAttention, FlashMLA",
        r"flash_?mla mla:: splitkv flash_fwd_combine flashattnfwdcombine get_mla_metadata flash_decod",
    ),
    (
        _K.ATTENTION_DECODE,
        "vLLM, SGLang, Triton",
        r"paged_attention _fwd_(grouped_)?kernel_stage[12] decode_att _attn_decode reduce_segments merge_attn_states "
        r"cascade_merge",
    ),
    (
        _K.ATTENTION_PREFILL,
        "vLLM, SGLang, Triton",
        r"context_attention extend_attention ^_fwd_kernel$ _fwd_kernel_(prefix|aligned) chunk_prefill prefix_prefill",
    ),
    (
        _K.ATTENTION_DECODE,
        "TensorRT-LLM",
        r"mmha masked_multihead xqa fmha.*(generation|decode) fmhasm\d+.*(gen|qseqk)",
    ),
    (
        _K.ATTENTION_PREFILL,
        "TensorRT-LLM",
        r"fmha_v2 fmha.*context contextfmha",
    ),
    (
        _K.ATTENTION,
        "FlashAttention, cuDNN, CK",
        r"flash_?(fwd|attn|attention) flash:: fmha sdpa efficient_attention attn_fwd attention_kernel unified_attention "
        r"lightning_attn _attn_",
    ),
    (
        _K.ATTENTION,
        "KV-cache writes",
        r"reshape_and_cache concat_and_cache append_?paged kv_?cache set_kv_buffer store_?kv update_?kv rope_quantize "
        r"create_flashinfer_kv convert_vertical prepare_varlen",
    ),
    # sampling
    (
        _K.SAMPLING,
        "vLLM, SGLang",
        r"gumbel top_?k_?top_?p top_?k_?(mask|renorm|logits|per_row) top_?p_?(sampling|renorm) min_?p sampling rejection "
        r"apply_(repetition_)?penalt bitmask logprob logits spec_?(verify|tree) tree_?speculative",
    ),
    (
        _K.SAMPLING,
        "PyTorch",
        r"argmaxops argmaxreduce multinomial exponential_ sbtopk mbtopk radixsort devicesegmentedsort devicescan "
        r"tensor_kernel_scan softmaxforward softmax_warp cunn_softmax distribution_",
    ),
    # matrix products
    (
        _K.GEMM,
        "cuBLAS, CUTLASS",
        r"gemm nvjet cublas cutlass splitkreduce xmma ampere_ hopper_.*tn sm\d+_xmma gemv dot_kernel wgmma cudnn.*matmul",
    ),
    (
        _K.GEMM,
        "quantised",
        r"marlin machete gptq awq aqlm scaled_mm w4a\d+ w8a\d+ fp8_block deep_?gemm bitblas exllama qgemm mxfp",
    ),
    (
        _K.GEMM,
        "Triton, ROCm",
        r"triton_tem_ _matmul matmul_ _mm_kernel ^cijk_ tensile wvsplitk hipblaslt bgmv sgmv lora_(shrink|expand)",
    ),
    # everything that passes over a tensor once
    (
        _K.COPY,
        "PyTorch's copies by kernel",
        r"direct_copy_kernel catarraybatched memcpy memset",
    ),
    (
        _K.NORM_ELEMENTWISE,
        "norms, rotary, activations",
        r"norm rotary rope act_and_mul silu gelu swiglu activation quant dequant cast scale",
    ),
    (
        _K.NORM_ELEMENTWISE,
        "PyTorch",
        r"elementwise reduce_kernel fillfunctor indexselect index_put vectorized_gather embedding softmax scatter_gather "
        r"triu_tril",
    ),
)
