"""hybrid-runner jobs."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Awaitable, Callable

from hybrid_runner.cli.jobviews import print_job, print_jobs
from hybrid_runner.cli.names import queue_name
from hybrid_runner.cli.output import print_json
from hybrid_runner.cli.parsing import Parser, add_common, job_id, whole
from hybrid_runner.cli.session import opened, run
from hybrid_runner.display import bytes_text
from hybrid_runner.errors import JobNotFound, RunnerError
from hybrid_runner.model.answers import CancelAnswer, RetryAnswer
from hybrid_runner.model.jobs import State
from hybrid_runner.runner import Runner

_SAID: dict[CancelAnswer | RetryAnswer, str] = {
    "cancelled": "is cancelled",
    "requested": "runs, and was told to stop",
    "queued": "is queued again",
}
_REFUSED: dict[CancelAnswer | RetryAnswer, str] = {
    "unknown": "there is no job {}",
    "finished": "job {} has ended already",
    "running": "job {} is running{}: cancel it first",
    "key_taken": "job {} cannot be queued again: another live job has its key",
}


def configure(parser: Parser) -> None:
    commands = parser.add_commands()

    listing = commands.add_parser(
        "list", help="the newest jobs first", description="The newest jobs first."
    )
    listing.add_argument(
        "--state", choices=[state.value for state in State], help="only those in this state"
    )
    listing.add_argument("--queue", type=queue_name, help="only those of this queue")
    listing.add_argument("--kind", help="only those of this kind")
    listing.add_argument(
        "--limit",
        type=whole(1, 10_000),
        default=50,
        metavar="N",
        help="how many at most (default: 50)",
    )
    add_common(listing)
    listing.run_by(lambda arguments: run(_list(arguments)))

    show = commands.add_parser(
        "show", help="everything about one job", description="Everything about one job."
    )
    show.add_argument("id", metavar="ID", type=job_id, help="the number of the job")
    add_common(show)
    show.run_by(lambda arguments: run(_show(arguments)))

    cancel = commands.add_parser(
        "cancel",
        help="end queued jobs, tell running ones to stop",
        description=(
            "End queued jobs, tell running ones to stop. A running job whose worker is dead ends at"
            " once."
        ),
    )
    cancel.add_argument("ids", metavar="ID", type=job_id, nargs="+", help="the numbers of the jobs")
    cancel.add_argument("--reason", help="kept with the job")
    add_common(cancel)
    cancel.run_by(
        lambda arguments: run(
            _change(arguments, lambda app, number: app.cancel(number, arguments.reason))
        )
    )

    retry = commands.add_parser(
        "retry",
        help="run ended jobs again, waiting ones now",
        description=(
            "Run ended jobs again, waiting ones now, and those that a dead worker left running."
        ),
    )
    retry.add_argument("ids", metavar="ID", type=job_id, nargs="+", help="the numbers of the jobs")
    add_common(retry)
    retry.run_by(lambda arguments: run(_change(arguments, lambda app, number: app.retry(number))))

    prune = commands.add_parser(
        "prune",
        help="forget what is no longer kept",
        description="Forget ended jobs that are no longer kept. Workers do it every ten minutes.",
    )
    add_common(prune)
    prune.run_by(lambda arguments: run(_prune(arguments)))


async def _list(arguments: argparse.Namespace) -> int:
    async with opened(arguments) as app:
        jobs = await app.list_jobs(
            state=arguments.state, queue=arguments.queue, kind=arguments.kind, most=arguments.limit
        )
    if arguments.json:
        print_json(jobs)
    else:
        print_jobs(jobs)
    return 0


async def _show(arguments: argparse.Namespace) -> int:
    async with opened(arguments) as app:
        job = await app.get(arguments.id)
    if job is None:
        raise JobNotFound(f"there is no job {arguments.id}")
    if arguments.json:
        print_json(job)
    else:
        print_job(job)
    return 0


async def _prune(arguments: argparse.Namespace) -> int:
    async with opened(arguments) as app:
        done = await app.prune()
    if arguments.json:
        print_json([one._asdict() for one in done])
        return 0
    freed = sum(one.bytes for one in done if not one.prevented)
    counts = Counter(one.what for one in done)
    said = ", ".join(f"{count} {what}" for what, count in counts.items() if what != "busy")
    if counts["busy"]:
        print("another is pruning, or somebody retries an ended job: nothing was done")
    else:
        print(f"partitions: {said}; {bytes_text(freed)} freed" if said else "nothing to forget")
    return 0


async def _change(
    arguments: argparse.Namespace,
    change: Callable[[Runner, int], Awaitable[CancelAnswer | RetryAnswer]],
) -> int:
    async with opened(arguments) as app:
        said = {number: await change(app, number) for number in dict.fromkeys(arguments.ids)}
        workers = {
            number: await _on_worker(app, number)
            for number, outcome in said.items()
            if outcome == "running"
        }
    if arguments.json:
        print_json([{"id": number, "outcome": outcome} for number, outcome in said.items()])
    else:
        for number, outcome in said.items():
            if outcome in _SAID:
                print(f"job {number} {_SAID[outcome]}")
    refused = [
        _REFUSED[outcome].format(number, workers.get(number, ""))
        for number, outcome in said.items()
        if outcome not in _SAID
    ]
    if refused:
        raise RunnerError("; ".join(refused))
    return 0


async def _on_worker(app: Runner, number: int) -> str:
    job = await app.get(number)
    return f" on worker {job.worker_id}" if job is not None and job.worker_id else ""
