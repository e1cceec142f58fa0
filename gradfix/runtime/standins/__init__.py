"""Stand-ins for what a run does not have: data, an accelerator, other processes, modules that only log.

Beside torch they use what the script has imported itself.

Nothing is made up until a run has failed for want of it. A run begins with an empty *schema*; where it fails,
:func:`advise` says what the error lacks as a *larger schema*, and the run is repeated with that: the file
that was not found, a column that was asked for, the size that a layer wanted. So a schema grows by
counterexamples until the script takes two optimizer steps, or until no error suggests anything. All runs of
one verification then use the same schema, so the version before a rewrite and the one after it see the same
content. Every stand-in is an event of the recording, once.

===========  ===========================================================================================
`schema`     what is made up, as JSON, and how it grows
`files`      files and folders that are not there: pictures, texts, tables, arrays
`value`      what a pickle or a JSON file would have held: a value that its use gives a shape
`fit`        what the message of an error says of a size, a number of dimensions, a type
`datasets`   torchvision's and Hugging Face's data sets at their own classes, without their files
`devices`    an accelerator that is not there is the CPU; a world of one process
`ignored`    modules that only log or draw
`project`    the project's own packages, as if it had been installed
===========  ===========================================================================================
"""

from __future__ import annotations

from typing import Any

from . import context, datasets, devices, files, fit, ignored, project, schema, value


def install(recorder: Any, job: dict[str, Any], overlay: Any) -> None:
    """Put what the job's schema says in the place of what is missing, before the script begins."""
    run = context.begin(recorder, job, overlay)
    if not job["schema"]:
        return
    project.install(run)
    devices.install(run)
    ignored.install(run)
    datasets.install(run)
    value.install(run)
    files.install(run)


def advise(error: BaseException) -> str | None:
    """The schema of a run that might get further, ``None`` if nothing suggests one.

    Args:
        error: What ended the run.
    """
    run = context.run()
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return advise_at_end(late=True)
    cause: BaseException | None = error
    while cause is not None:
        for adviser in (
            project.advise,
            files.missing,
            ignored.advise,
            devices.advise,
            datasets.advise,
            fit.advise,
            files.advise,
            *run.advisers,
        ):
            if (found := adviser(run, cause)) is not None and (text := schema.fresh(run, found)) is not None:
                return text
        # What a script does after an error fails where there was to be none.
        cause = cause.__cause__ or cause.__context__
    return None


def advise_at_end(late: bool) -> str | None:
    """The same for a script that has come to its end without two steps, or whose time was over."""
    run = context.run()
    if late:
        found = fit.smaller_batches(run)
    else:
        advisers = (*run.at_end, files.asked_for, files.more)
        found = next((one for adviser in advisers if (one := adviser(run)) is not None), None)
    return schema.fresh(run, found) if found is not None else None
