"""`shipfitter estimate`: what an engine command will get on a card, and how sure that is."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from shipfitter.api.serve_checks import flag_problems
from shipfitter.api.serve_command import ServeCommand, config_arguments, parse_serve_command
from shipfitter.api.serve_settings import serve_settings
from shipfitter.cli.estimate_card import Card, estimated_card
from shipfitter.cli.estimate_drafter import with_drafter
from shipfitter.cli.estimate_engine import engine_under
from shipfitter.cli.estimate_model import estimated_model
from shipfitter.cli.estimate_question import Question
from shipfitter.cli.estimate_record import Estimated, estimate_record
from shipfitter.core.engines import EngineSettings, EngineVersion
from shipfitter.core.fixes import fixes, joint_fix
from shipfitter.core.verdict import Assessment, Verdict, assess
from shipfitter.errors import InvalidSpecError, UserError
from shipfitter.units import GIB

__all__ = ["Question", "estimate", "run_estimate"]

EXIT_CODES: Mapping[Verdict, int] = {
    Verdict.FITS: 0,
    Verdict.DOES_NOT_FIT: 1,
    Verdict.BORDERLINE: 3,
}
EXIT_MISTAKE = 2
# A node's GPUs where nobody says: what the largest common machines have.
_ASSUMED_GPUS_PER_NODE = 8


def run_estimate(question: Question, *, output: str) -> int:
    """Print the estimate; the exit code of its verdict."""
    try:
        estimated = estimate(question)
    except UserError as error:
        name = "" if error.reason == "InvalidSpec" else f"{error.reason}: "
        message = _in_words_of_the_command(str(error))
        print(f"shipfitter: {name}{message}", file=sys.stderr)
        return EXIT_MISTAKE
    record = estimate_record(estimated)
    if output == "json":
        print(json.dumps(record, indent=2))
    elif output == "yaml":
        import yaml

        print(yaml.safe_dump(record, sort_keys=False), end="")
    else:
        from shipfitter.cli.estimate_text import estimate_text

        print(estimate_text(estimated, record))
    return EXIT_CODES[estimated.assessment.verdict]


def _in_words_of_the_command(message: str) -> str:
    """A message that was written for the object in the cluster."""
    message = message.replace(
        "write the model's facts into spec.model.facts", "give --model-facts FILE"
    )
    message = message.replace("spec.model.facts", "--model-facts")
    message = message.replace("in spec.engine.version", "with --engine-version")
    return message.replace("it is asked again by itself", "try again")


def estimate(question: Question) -> Estimated:
    """The answer to a command line. Raises UserError for what cannot be meant."""
    command = _command(question.words)
    environment = _environment(command, question.environment)
    version = _version(question, command)
    asked = serve_settings(command, version, environment)
    card = estimated_card(
        question.gpu,
        memory_mib=question.gpu_memory_mib,
        free_mib=question.gpu_free_memory_mib,
        nvlink=None if question.interconnect is None else question.interconnect == "nvlink",
    )
    model = estimated_model(
        command.model,
        asked,
        facts_file=question.model_facts,
        revision=question.revision or command.text("--revision"),
    )
    settings, notes = engine_under(question, asked, card, model, environment)
    model, settings, said = with_drafter(
        model, settings, asked.drafter, name=command.model, offline=question.offline
    )
    notes = (*notes, *said)
    nodes = question.nodes or asked.nodes or 1

    def judged(changed: EngineSettings) -> Assessment:
        gpus = _gpus(card, changed, nodes)
        problems = (
            *flag_problems(command, model, changed, card.gpu, gpus=gpus),
            *card.problems(changed.layout.world_size),
        )
        if problems:
            return Assessment(
                settings=changed,
                verdict=Verdict.DOES_NOT_FIT,
                reason=problems[0][0],
                problems=tuple(sentence for _, sentence in problems),
            )
        return assess(
            model,
            changed,
            card.gpu,
            gpus_per_node=gpus,
            auto_length=asked.auto_length,
            long_length_allowed=asked.long_length_allowed,
            given_cache_bytes=_given_bytes(question),
        )

    found = judged(settings)
    if found.settings.version != settings.version:
        notes = (*notes, f"the engine before V1 runs, counted as vLLM {found.settings.version}")
    single = fixes(model, settings, card.gpu, found, judged)
    mended = found.verdict is Verdict.FITS or any(fix.verdict is Verdict.FITS for fix in single)
    return Estimated(
        assessment=found,
        model=model,
        card=card,
        nodes=nodes,
        engine_version=version,
        typical_tokens=question.typical_tokens,
        given_cache_bytes=_given_bytes(question),
        fixes=single,
        joint_fix=None if mended else joint_fix(model, settings, card.gpu, found, judged),
        assumptions=notes,
        quantized_as=asked.quantization,
    )


# Options of ours that no engine has, and that people write behind the command.
_BEFORE_THE_COMMAND = frozenset(
    (
        "--gpu",
        "--gpu-memory-mib",
        "--gpu-free-memory-mib",
        "--engine-version",
        "--model-facts",
        "--given-kv-cache-memory-gib",
        "--compile-cache",
        "--typical-tokens",
        "--calibration",
        "--interconnect",
    )
)


def _command(words: Sequence[str]) -> ServeCommand:
    misplaced = [word for word in words if word.partition("=")[0] in _BEFORE_THE_COMMAND]
    if misplaced:
        raise InvalidSpecError(
            tuple(f"{word} is an option of shipfitter: write it before --" for word in misplaced)
        )
    command = parse_serve_command(words)
    path = command.text("--config")
    if path is None:
        return command
    import yaml

    try:
        config = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSpecError((f"--config {path}: {error.strerror}",)) from error
    except yaml.YAMLError as error:
        raise InvalidSpecError((f"--config {path}: not YAML: {error}",)) from error
    if not isinstance(config, dict):
        raise InvalidSpecError((f"--config {path}: holds no flags; write `max-model-len: 8192`",))
    return command.over(parse_serve_command(config_arguments(config)))


def _environment(command: ServeCommand, given: Sequence[str]) -> dict[str, str]:
    """The engine's variables: this process's, then the command's own, then --env."""
    environment = {key: value for key, value in os.environ.items() if key.startswith("VLLM_")}
    environment.update(command.environment)
    for assignment in given:
        name, equals, value = assignment.partition("=")
        if not equals or not name:
            raise InvalidSpecError((f"--env takes NAME=VALUE, got {assignment}",))
        environment[name] = value
    return environment


def _version(question: Question, command: ServeCommand) -> EngineVersion:
    stated = question.engine_version or command.image_tag
    return EngineSettings.latest().version if stated is None else EngineVersion.parse(stated)


def _gpus(card: Card, settings: EngineSettings, nodes: int) -> int:
    """The GPUs of all nodes as --gpu counts them; otherwise enough."""
    if card.gpus_per_node is not None:
        return card.gpus_per_node * nodes
    needed = settings.layout.world_size * settings.layout.data_parallel_size
    return max(_ASSUMED_GPUS_PER_NODE * nodes, needed)


def _given_bytes(question: Question) -> int | None:
    if question.given_cache_gib is None:
        return None
    return round(question.given_cache_gib * GIB)
