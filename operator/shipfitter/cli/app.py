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
