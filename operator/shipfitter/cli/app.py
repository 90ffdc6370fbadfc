"""The commands people type."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="shipfitter",
    help="Fits LLM serving onto the GPUs a Kubernetes cluster really has.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


class Output(StrEnum):
    """How a result is printed."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


class CompileCache(StrEnum):
    """Whether torch.compile's cache outlives the pod."""

    COLD = "cold"
    WARM = "warm"


class Interconnect(StrEnum):
    """How the GPUs of a node talk."""

    NVLINK = "nvlink"
    PCIE = "pcie"


@app.command()
def plan(
    file: Annotated[
        Path,
        typer.Option("--file", "-f", help="A ModelDeployment in YAML; - reads standard input."),
    ],
    gpu: Annotated[
        list[str] | None,
        typer.Option(
            "--gpu",
            metavar="PRODUCT[:COUNT]",
            help="Plan for a node with these GPUs; may be repeated, one node type each.",
        ),
    ] = None,
    nodes: Annotated[
        Path | None,
        typer.Option(
            "--nodes",
            help="Plan for the Nodes and GPUNodes in a file (kubectl get nodes,gpunodes -o yaml).",
        ),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o")] = Output.TEXT,
    manifests: Annotated[
        bool, typer.Option("--manifests", help="Print the manifests that would be applied.")
    ] = False,
    context: Annotated[
        str | None, typer.Option("--context", help="kubeconfig context of the cluster to ask.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Use only facts that are known without a hub.")
    ] = False,
) -> None:
    """Print the plan the operator would make: for --gpu, --nodes, or the cluster of the kubeconfig.

    Exit code: 0 it fits, 3 borderline, 1 it does not fit, 2 a mistake in what was given.
    """
    from shipfitter.cli.plan import run_plan

    sys.exit(
        run_plan(
            file,
            gpu or [],
            nodes,
            output=str(output),
            manifests=manifests,
            context=context,
            offline=offline,
        )
    )


@app.command()
def estimate(
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- vllm serve MODEL ...", help="The engine's command line."),
    ],
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu",
            metavar="PRODUCT[:COUNT]",
            help="The card and how many a node has; unknown for a card without a name.",
        ),
    ] = None,
    gpu_memory_mib: Annotated[
        float | None,
        typer.Option("--gpu-memory-mib", help="Total that CUDA sees (nvidia-smi shows more)."),
    ] = None,
    gpu_free_memory_mib: Annotated[
        float | None,
        typer.Option(
            "--gpu-free-memory-mib", help="Free of it before the engine starts: other tenants."
        ),
    ] = None,
    nodes: Annotated[int | None, typer.Option("--nodes", min=1, help="Nodes of a replica.")] = None,
    interconnect: Annotated[
        Interconnect | None, typer.Option("--interconnect", help="Between the GPUs of a node.")
    ] = None,
    engine_version: Annotated[
        str | None, typer.Option("--engine-version", help="vLLM's release; the newest known.")
    ] = None,
    model_facts: Annotated[
        Path | None,
        typer.Option(
            "--model-facts",
            metavar="FILE",
            help='{"config": config.json, "weights": {"total_bytes": N}}; no hub is asked.',
        ),
    ] = None,
    revision: Annotated[
        str | None, typer.Option("--revision", help="Branch, tag or commit of the model.")
    ] = None,
    given_kv_cache_memory_gib: Annotated[
        float | None,
        typer.Option(
            "--given-kv-cache-memory-gib",
            help="Cache memory of each GPU as the engine logged it: only the planner is asked.",
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", help="A VLLM_* variable of the engine."),
    ] = None,
    compile_cache: Annotated[
        CompileCache, typer.Option("--compile-cache", help="torch.compile's cache at the start.")
    ] = CompileCache.COLD,
    typical_tokens: Annotated[
        int | None,
        typer.Option("--typical-tokens", min=1, help="Tokens a running request holds; 2048."),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option("--calibration", metavar="FILE", help="A Calibration object in YAML."),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o")] = Output.TEXT,
) -> None:
    """Say what a vLLM command gets on a card: memory, cache, verdict, and what would help.

    Everything after -- is the command. Exit code: 0 it fits, 3 borderline, 1 it does not fit, 2 a
    mistake in what was given.
    """
    from shipfitter.cli.estimate import Question, run_estimate

    question = Question(
        words=command,
        gpu=gpu,
        gpu_memory_mib=gpu_memory_mib,
        gpu_free_memory_mib=gpu_free_memory_mib,
        nodes=nodes,
        interconnect=None if interconnect is None else str(interconnect),
        engine_version=engine_version,
        model_facts=model_facts,
        revision=revision,
        given_cache_gib=given_kv_cache_memory_gib,
        environment=env or (),
        compile_cache=str(compile_cache),
        typical_tokens=typical_tokens,
        calibration=calibration,
    )
    sys.exit(run_estimate(question, output=str(output)))


@app.command(name="compare-log")
def compare_log(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The engine's output; - reads standard input.")
    ],
    model_facts: Annotated[
        Path | None,
        typer.Option(
            "--model-facts",
            metavar="FILE",
            help='{"config": config.json, "weights": {"total_bytes": N}}; no hub is asked.',
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", metavar="PRODUCT[:COUNT]", help="Where the log does not name it."),
    ] = None,
    gpu_memory_mib: Annotated[
        float | None,
        typer.Option("--gpu-memory-mib", help="Total that CUDA sees, where the log has none."),
    ] = None,
    engine_version: Annotated[
        str | None,
        typer.Option("--engine-version", help="vLLM's release, where the log does not say it."),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Use only facts that are known without a hub.")
    ] = False,
    output: Annotated[Output, typer.Option("--output", "-o")] = Output.TEXT,
) -> None:
    """Read a vLLM log of any release and print it against the prediction, line by line.

    Exit code: 0 when the log said anything, 2 when it did not.
    """
    from shipfitter.cli.compare_log import Filling, run_compare_log

    filling = Filling(
        model_facts=model_facts,
        gpu=gpu,
        gpu_memory_mib=gpu_memory_mib,
        engine_version=engine_version,
        offline=offline,
    )
    sys.exit(run_compare_log(file, filling, output=str(output)))


@app.command()
def gpus(
    nodes: Annotated[
        Path | None,
        typer.Option(
            "--nodes",
            help="Read the objects of a file (kubectl get nodes,gpunodes,resourceslices -o yaml).",
        ),
    ] = None,
    resolve: Annotated[
        str | None,
        typer.Option(
            "--resolve",
            metavar="SPELLING",
            help="Say what a product string, a label's value or an instance type stands for.",
        ),
    ] = None,
    context: Annotated[
        str | None, typer.Option("--context", help="kubeconfig context of the cluster to ask.")
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o")] = Output.TEXT,
) -> None:
    """Print what the GPUs of a cluster offer, pool by pool: how much, how sure, and how many free.

    Exit code: 0, or 2 for a mistake in what was given and for a spelling that names nothing.
    """
    from shipfitter.cli.gpus import run_gpus

    sys.exit(run_gpus(nodes, resolve=resolve, output=str(output), context=context))


@app.command()
def crd() -> None:
    """Print the CustomResourceDefinitions (kubectl apply --server-side -f -)."""
    from shipfitter.api.crd import KINDS, crd_yaml

    typer.echo("---\n".join(crd_yaml(kind.name) for kind in KINDS), nl=False)


@app.command()
def version() -> None:
    """Print the version, and the engine versions whose memory is known."""
    from importlib.metadata import version as installed

    from shipfitter.core.engines import EngineSettings

    newest = EngineSettings.latest().version
    typer.echo(f"shipfitter {installed('shipfitter')} (vLLM 0.6 to {newest})")


@app.command(hidden=True, add_help_option=False)
def operator() -> None:  # pragma: no cover - `main` takes it before the app does
    """Run the operator (in its pod)."""


@app.command(hidden=True, add_help_option=False)
def agent() -> None:  # pragma: no cover - `main` takes it before the app does
    """Run the node agent (in its pod)."""


@app.command(hidden=True, add_help_option=False)
def inspect() -> None:  # pragma: no cover - `main` takes it before the app does
    """Read a gated model or one on a claim (in a Job's pod)."""
