"""Kernels by name and class, tiny ones, outliers."""

from __future__ import annotations

import pytest

from heptascope.sources.trace.analyze import analyse
from heptascope.sources.trace.kernels import classify, point_to_point, short_name
from heptascope.sources.trace.measures import Measures
from support.trace_builder import TraceBuilder


def _measure(build: TraceBuilder) -> Measures:
    return analyse(build.trace(), "0").measures


def test_top_kernels_have_their_totals_and_percentiles() -> None:
    """100 runs of 1 to 100 µs and one of 10 ms."""
    build = TraceBuilder().kernel("gemm_large", 0, 10_000)
    for i in range(1, 101):
        build.kernel("gemm_small", 20_000 + 200 * i, i)
    first, second = _measure(build).top
    assert ("gemm_large", "gemm", 1) == (first.name, first.kernel_class, first.count)
    assert (10e-3, 10_000 / 15_050) == pytest.approx((first.seconds, first.share))
    assert ("gemm_small", 100) == (second.name, second.count)
    assert (5050e-6, 50.5e-6, 50e-6, 99e-6, 100e-6) == pytest.approx((second.seconds, second.mean, second.p50, second.p99, second.max))


def test_tiny_kernels_are_those_below_five_microseconds() -> None:
    """3 of 4 kernels are shorter, the one of exactly 5 µs is not."""
    build = TraceBuilder().kernel("a", 0, 1).kernel("a", 10, 2).kernel("a", 20, 4.999).kernel("a", 30, 5)
    measures = _measure(build)
    assert (0.75, 7.999 / 12.999) == pytest.approx((measures.tiny_ratio, measures.tiny_time_ratio))


def test_outliers_are_judged_by_kernel_and_shape() -> None:
    """A long run of another shape is normal; one of the same shape at 3 times the median is not; few runs give no median."""
    build, at = TraceBuilder(), 0.0
    for duration, grid, name in [
        *[(10, 1, "k")] * 8,
        (30, 1, "k"),
        (29.9, 1, "k"),
        *[(40, 2, "k")] * 8,
        *[(10, 1, "few")] * 6,
        (90, 1, "few"),
    ]:
        build.kernel(name, at, duration, grid=[grid, 1, 1], block=[32, 1, 1])
        at += 200
    measures = _measure(build)
    assert (1, 20e-6) == pytest.approx((measures.outliers, measures.outlier_seconds))
    assert {"k": 1, "few": 0} == {kernel.name: kernel.outliers for kernel in measures.top}


def test_time_by_class_adds_up() -> None:
    """Classes hold all GPU work, copies too."""
    build = TraceBuilder().kernel("nvjet_tst", 0, 60).kernel("rms_norm_kernel", 60, 20).kernel("what_is_this", 80, 10)
    build.copy("Memcpy HtoD (Pinned -> Device)", 90, 10)
    found = {row.kernel_class: (row.count, round(row.share, 6)) for row in _measure(build).classes}
    assert {"gemm": (1, 0.6), "norm_elementwise": (1, 0.2), "other": (1, 0.1), "copy": (1, 0.1)} == found


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("execute_context_2(500)_generation_0(0)", "attention_prefill"),
        ("execute_context_0(0)_generation_8(8)", "attention_decode"),
        ("execute_context_1(16)_generation_7(7)", "attention"),
        ("execute_new_3_cached_0", "attention_prefill"),
        ("step[EXTEND bs=1 toks=9]", "attention_prefill"),
        ("step[DECODE bs=4]", "attention_decode"),
        ("[Executor] _forward_step 7: 0 ctx reqs, 3 gen reqs", "attention_decode"),
        ("[Executor] _forward_step 7: 2 ctx reqs, 90 ctx tokens, 0 gen reqs", "attention_prefill"),
    ],
)
def test_attention_that_serves_both_phases_goes_by_its_step(annotation: str, expected: str) -> None:
    """The step in which a kernel was launched says whether it was prefill or decode."""
    build = TraceBuilder()
    for at in (0.0, 1000.0, 2000.0):
        build.add("user_annotation", annotation, at, 500).kernel("flash::flash_fwd_kernel", at + 600, 50, launched=at + 100)
    assert [expected] == [row.kernel_class for row in _measure(build).classes]


def test_occupancy_estimate_is_weighted_by_time() -> None:
    """30 µs at 10 % and 10 µs at 50 %; a kernel without an estimate does not count."""
    build = TraceBuilder()
    for start, duration, percent in ((0, 30, 10), (40, 10, 50)):
        build.gpu("kernel", "k", start, duration, **{"est. achieved occupancy %": percent})
    measures = _measure(build.kernel("k", 60, 100))
    assert 0.2 == pytest.approx(measures.occupancy_estimate_ratio)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void flashinfer::BatchPrefillWithPagedKVCacheKernel<(flashinfer::MaskMode)1>(Params)", "attention_prefill"),
        ("void flashinfer::BatchDecodeWithPagedKVCacheKernel<true>(Params)", "attention_decode"),
        ("void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128>>(Flash_fwd_params)", "attention_decode"),
        ("void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<x>>>(Params)", "attention"),
        ("void vllm::paged_attention_v2_kernel<unsigned short>(float*)", "attention_decode"),
        ("kernel_unified_attention_2d", "attention"),
        ("_fwd_grouped_kernel_stage1", "attention_decode"),
        ("void flash::flash_fwd_splitkv_mla_kernel<Traits>(Params)", "attention_decode"),
        ("void vllm::reshape_and_cache_flash_kernel<bf16>(x)", "attention"),
        ("fmha_v2_flash_attention_bf16_64_128_S_q_paged_kv_128_causal_sm90_kernel_nl", "attention_prefill"),
        ("void tensorrt_llm::kernels::mmha::masked_multihead_attention_kernel<half>(x)", "attention_decode"),
        ("kernel_mha_xqa_sm90", "attention_decode"),
        ("nvjet_sm90_tst_128x8_64x12_2x1_v_bz_TNT", "gemm"),
        ("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32", "gemm"),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16>(Params)", "gemm"),
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", "gemm"),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float>(x)", "gemm"),
        ("void marlin::Marlin<half>(x)", "gemm"),
        ("void deep_gemm::fp8_gemm_kernel<1u>(x)", "gemm"),
        ("triton_tem_fused_mm_3", "gemm"),
        ("_w8a8_block_fp8_matmul", "gemm"),
        ("fused_moe_kernel", "moe"),
        ("void vllm::moe::topkGatingSoftmax<8, 64>(x)", "moe"),
        ("void moe_align_block_size_kernel<int>(x)", "moe"),
        ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<GroupProblemShape<x>>>(Params)", "moe"),
        ("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_4", "norm_elementwise"),
        ("triton_poi_fused_all_gather_silu_topk_softmax_2", "norm_elementwise"),
        ("void vllm::rms_norm_kernel<bf16>(x)", "norm_elementwise"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>(int)", "norm_elementwise"),
        ("void at::native::elementwise_kernel<128, 4, direct_copy_kernel_cuda(x)>(int)", "copy"),
        ("Memcpy DtoD (Device -> Device)", "copy"),
        ("Memset (Device)", "copy"),
        ("_gumbel_sample_kernel", "sampling"),
        ("void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>(x)", "sampling"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>(x)", "sampling"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "collective"),
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*)", "collective"),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(x)", "collective"),
        ("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<x>(y)", "collective"),
        ("void deep_ep::internode_ll::dispatch<true>(x)", "collective"),
        ("multimem_all_reduce_kernel", "collective"),
        ("_prepare_pos_seq_lens_kernel", "other"),
    ],
)
def test_names_of_the_libraries_have_their_class(name: str, expected: str) -> None:
    """One name or more of each library in the table."""
    assert expected == classify(name)


def test_send_and_receive_are_point_to_point() -> None:
    """Pipeline stages talk through NCCL's send and receive kernel."""
    assert [True, False] == [point_to_point(f"ncclDevKernel_{what}(x)") for what in ("SendRecv", "AllReduce_Sum_f32_RING_LL")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void vllm::rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, int)", "vllm::rms_norm_kernel<…>"),
        (
            "void at::native::(anonymous namespace)::indexSelectSmallIndex<int>(x)",
            "at::native::(anonymous namespace)::indexSelectSmallIndex<…>",
        ),
        ("void cutlass::device_kernel<flash::on<flash::FlashAttnFwdSm90<x>>>(P)", "cutlass::device_kernel<…> FlashAttnFwdSm90"),
        ("std::enable_if<(((8)>(0)))&&x, void>::type vllm::fused_add_rms_norm_kernel<y>(z)", "vllm::fused_add_rms_norm_kernel<…>"),
        ("nvjet_sm90_tst", "nvjet_sm90_tst"),
        ("(strange", "(strange"),
        ("", ""),
    ],
)
def test_short_names_keep_what_tells_kernels_apart(name: str, expected: str) -> None:
    """Return types, arguments and template arguments go; the kernel inside a wrapper stays."""
    assert expected == short_name(name)
