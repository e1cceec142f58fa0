"""Run training scripts under watch, in the user's interpreter.

It is started, and never imported by gradfix. Ways to start it::

    probe JOB.json              run one job in this process
    probe --serve WORKERS FOLDER HELD
                                import torch once, read paths of job files from standard input, fork a
                                process for each (so many at a time), answer a line of JSON when one is over;
                                FOLDER is removed if the caller ends before, and HELD says what the kernel
                                holds, by commas (see ``sandbox/levels.py``)
    probe --serve WORKERS FOLDER HELD EXECUTABLE PREFIX...
                                the same for an interpreter of which nothing may run outside the sandbox: this
                                one imports nothing, and each of the processes becomes that one once it is
                                confined. It is installed below these prefixes
    probe --confined JOB EVENTS VALUES
                                what it becomes: run the job in a process that is confined already; the
                                arguments are descriptors

A job is a JSON object: ``path`` (the file under test), ``source`` (the text to run in its place), ``root``
(the project's folder), ``folder`` (where to write), ``command`` (how the user runs it: ``entry``, the script
that is started, which may be another that imports the file; ``module``, its name for ``python -m``, or
``null``; ``args``; ``cwd``, the working directory; ``readable``, further folders that may be read; ``env``,
variables of the user's by name), ``imports`` (the folders on ``PYTHONPATH``, of which this process was given
only those that are not the code's), ``seed``, ``watched``, ``scout``, ``corrections``, ``keep``, ``blind``,
``still``, ``dither``, ``alone``, ``moves``, ``numbered``, ``numbers``, ``fake``, ``thorough``, ``updates``,
``level`` (see ``sandbox/__init__.py``), ``shared`` (whether private file systems are to be
had) and ``limits`` (``steps``, ``backwards``, ``seconds``, ``memory``, ``file`` and ``disk`` in bytes,
``files``, ``tasks``). ``schema`` says what takes the place of data and devices that the run does not have:
nothing, if it is empty (see ``standins/__init__.py``). Where a run fails for want of something, the event
``schema`` has the schema with which it might get further.

``watched`` lists pieces of the text whose execution is recorded (see ``coverage.py``). A run with ``scout``
records only after how many steps and backward calls something was reached: with ``pieces`` it ends when all
pieces were executed and every optimizer has stepped a few times, with ``errors`` at the first error.

A run that is to ``dither`` rounds otherwise (Monte Carlo arithmetic): it moves all weights by as little as
their type can tell, when they are handed to an optimizer and after each step, and every gradient on its way
through a graph. The number, if it is not 0, seeds the signs. Such a run records for each gradient what the
terms that it is the sum of come to without their signs, times the precision of its type: what rounding may
leave of a sum that is zero.

``corrections`` is a list of ``[call, cut, [[optimizer, position], ...], [term, ...]]``. For this backward
call (counted from 0): ``cut`` says whether to drop the gradients that flow through what its losses use as
constants; the listed parameters get no gradient from it, and the listed terms, by number, give none.

``keep`` makes the original's own graph usable whatever is stepped or freed: every backward retains its graph,
and every saved tensor is kept as it was when it was saved. ``still`` puts the weights back after each
optimizer step, so that a forward repeated later computes the same; with ``alone``, the number of an
optimizer, all but after its own. ``moves`` puts them back, too, but after some of the steps to other weights
than before, the same ones in every run: it has, for each optimizer, a number that stands for it in all
versions, and the numbers of these steps. A ``blind`` run computes no gradients at all: it goes past what
autograd refuses, and shows the values of losses. In a ``numbered`` run random draws are told apart by
numbers, and may be given others, the ``numbers`` by kind (see ``draws.py``). ``fake`` computes nothing (see
``dataless.py``): there are shapes, hashes and errors, and no values. Only a ``thorough`` run has hashes, and
the bytes that graphs hold. With ``updates`` more is recorded: the weights after each step and in the end,
parameters that no optimizer owns, settings of modules.

It writes ``events.jsonl``, one event a line and flushed, so that a process that is killed leaves
what it had seen, and ``values.bin``, float64 values that events point into. What is watched runs
unchanged: hooks read, they draw no random numbers and they swallow no exception. When a budget
is spent the process exits on the spot, which no ``except:`` of the script can prevent.

The files are opened before the process confines itself, and the user's code may write to the folder
``scratch`` within ``folder`` only: it cannot put anything else in their place. What it writes elsewhere
goes there, and is found again (see ``overlay.py``).
"""

from __future__ import annotations

BY_HAND = -1
"""Stands among the backward calls that fed a gradient: something else assigned it."""
