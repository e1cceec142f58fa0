"""Smaller sizes, where a script names them: batches, pictures, sequences, and what comes before training.

A size is a number whose name says what it is: a literal that a name, an attribute, a parameter, an
argument or a key of the project's code is given, the value of an argument, or a field of a settings
object. Everything that is computed from such a name agrees. The script's text stays as it is: only
its compiled literals are asked about when they are reached.

What a script does at length without training is cut short: a loader's loop that has had
:data:`UNTRAINED` batches without a backward call (:data:`EVALUATED` where gradients are off) ends, and a
loop that fills a memory does so in :data:`FILL` turns. A script whose shapes are not made for that fails,
and is run with its own sizes.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.machinery
import importlib.util
import json
import math
import operator
import os
import re
import sys
import types
from typing import Any

import torch

from . import absent, content, context, files, finder, guards, library, plans, samples

BATCH = 4
TIMES = 8
"""Times a batch that another batch is, at most."""
FILL = 64
"""Transitions to collect before learning begins where that has no name: more than most batches."""
ENDLESS = 300
"""Times that loaders without batches are asked before it is clear that there is no end to it."""
UNTRAINED = 16
"""Batches in a row that train nothing: to evaluate, to show, or to compute statistics."""
EVALUATED = 4
"""The same where gradients are off, which leaves no doubt."""
SMALL = {
    "batch": BATCH,
    # Loaders get none anyway, but what trains in processes needs some; one alone is often treated apart.
    "workers": 2,
    "environments": 2,
    # Transitions to collect before learning begins: more than one batch.
    "warm up": 16,
    # Transitions that a replay memory has room for: some wait until it is full.
    "memory": 256,
    # Steps in an environment before a policy learns from them.
    "rollout": 64,
    # Batches or episodes.
    "evaluation": 2,
    # Steps of an attack, of learning within a step of learning, or of a search for each move of a game.
    "inner": 2,
    # Tasks that are learned in one step of learning to learn, all of them, and samples of each class in one.
    "tasks": 2,
    "tasks in all": 20,
    "shots": 2,
    "sequence": 32,
    # Values of a sound, a number that the usual steps between its windows divide.
    "sound": 4096,
    # Pixels along a side.
    "picture": 64,
    "vocabulary": 1000,
    # Equal layers or blocks in a row.
    "depth": 2,
    # Features of a layer: a number that heads and groups of all usual numbers divide.
    "width": 96,
    # Features of the first layer, of which the later ones have many times as many.
    "base": 32,
    # Times as wide as usual.
    "widening": 2,
}
"""The largest sizes in the manner *small*."""
LONG = ("warm up", "memory", "rollout", "evaluation", "inner")
"""What only says how long something goes on: it may be reduced where it is given, whatever it is there."""
LEAST = min(SMALL.values())
NETWORK = ("sequence", "sound", "vocabulary", "depth", "width", "base", "widening", "frames")
"""What the shapes within a network may be made for."""
TIGHT = {
    "batch": 2,
    "picture": 32,
    "frames": 4,
    "width": 48,
    "base": 16,
    "rollout": 32,
    "inner": 1,
    "samples": 1000,
}
"""Smaller still, where the time was over before the second step."""
WIDE = 1000
"""The least width that says of a literal in a layer, without a name, that the layer is a wide one."""
IDLE = 2
"""Turns of a loop without gradients, where the time was over in one."""
TURNS = 32
"""Turns above which a loop is a long one."""
MEDIUM = {**{kind: limit for kind, limit in SMALL.items() if kind not in NETWORK}, "picture": 128}
"""The same in the manner *medium*."""
FLAT = (784, 3072)
"""All numbers of a picture of MNIST or CIFAR, which some call its size."""

_NAMES: tuple[tuple[str, str], ...] = (
    (
        "batch",
        "batchsize trainbatchsize testbatchsize valbatchsize evalbatchsize bsz batchsz minibatchsize "
        "batchsizetrain batchsizetest batchsizeval batch bs batchnum trainbatch testbatch minibatch nbatch "
        "batchsizeperreplica batchesize batchsizes perdevicetrainbatchsize microbatchsize "
        "nrand nrays numrays raysperbatch",
    ),
    (
        "workers",
        "workers numworkers nworkers ncpu numcpu loadernumworkers nthreads dataloaderworkers worker "
        "cpu cpus nproc nprocs numprocs nprocess numthreads gradaccum gradaccumulationsteps "
        "gradientaccumulationsteps accumulationsteps accumgrad gradientaccumulateevery "
        "gradientaccumulation accumiter",
    ),
    (
        "environments",
        "numenvs nenvs numprocesses envnum parallelenvs numenv nenv nrolloutthreads numrolloutthreads "
        "nevalrolloutthreads numactors nactors numparallelenvs numenvironments",
    ),
    (
        "warm up",
        "learningstarts starttimesteps startsteps learnstart replaystart replaystartsize updateafter "
        "initialmemory initialexploration learningstart minreplaysize minmemory warmupsteps startlearning "
        "minmemorysize startupdate randomsteps initialcollectsteps initreplaysize seedepisodes observe "
        "numseedsteps replayinitial startepisode numinitialsteps observation startsize learnstartstep "
        "minimalsize minhistory updatestart initsteps numstepsbeforetrain replaystartthreshold "
        "explorationsteps episodesbeforetrain minreplaytotrain minreplay minmemorytotrain minbuffersize "
        "minbuffer replaymin minreplaybuffersize minsamplestotrain minbuffertotrain",
    ),
    (
        "memory",
        "buffersize memorysize replaysize memorycapacity replaycapacity buffercapacity replaybuffersize "
        "experiencesize capacity replaymemorysize maxbuffersize memory memsize maxmemory maxsize bufferlimit "
        "maxreplaysize "
        "replaymemory experiencereplaysize bufsize replaybuffer",
    ),
    (
        "rollout",
        "maxeplen maxepisodelen maxepisodelength maxepisodesteps updatetimestep updatetimesteps "
        "updateinterval rolloutlength rolloutsteps rolloutlen numrolloutsteps thorizon horizon trajlen "
        "nrollout timestepsperbatch maxtimestepsperepisode stepsperepoch trajectorylength localstepsperepoch "
        "minbatchsteps minbatchsize maxsteps numsteps nsteps maxtimesteps stepsperupdate numlocalsteps "
        "localsteps nlocalsteps rolloutsize numrolloutstep rolloutstep numforwardsteps numstepsperrollout "
        "stepsperrollout nrolloutsteps numagentsteps unrolllength numunrollsteps stepsperiter "
        "stepsperiteration",
    ),
    (
        "sequence",
        "seqlen sequencelength maxseqlen maxlen maxlength blocksize bptt seqlength contextlength "
        "maxsequencelength ctxlen validseqlen chunklen maxseqlength maxsentlen maxtextlen predlen labellen "
        "predlength",
    ),
    ("sound", "segmentsize segmentlength batchmaxsteps audiosegmentsize segmentlen"),
    (
        "picture",
        "imgsize imagesize imgheight imgwidth imageheight imagewidth cropsize loadsize finesize imgh "
        "imgw imsize picturesize imres imgres resolution imgdim patchsize trainh trainw croph cropw",
    ),
    (
        "vocabulary",
        "vocabsize nvocab numvocab vocabularysize srcvocabsize tgtvocabsize trgvocabsize ntoken ntokens",
    ),
    (
        "depth",
        "layers nlayer nlayers numlayers nblocks numblocks numresblocks nresblocks nresblock "
        "numresiduallayers "
        "numencoderlayers numdecoderlayers enclayers declayers numhiddenlayers nresnetlayers "
        "numresidualblocks nresidualblocks numtransformerlayers nblock numblock noutresblock ncondresblock "
        "residualblocks resblocks nresidual numresidual nres",
    ),
    (
        "width",
        "hidden hiddensize hiddendim hiddendims nhid nhidden numhidden hiddenunits numhiddenunits "
        "hiddenchannels dmodel dimmodel modeldim modelsize embsize embdim embeddim embeddingdim "
        "embeddingsize emsize nembd nembed nemb rnnsize lstmsize dff dimfeedforward ffndim ffdim "
        "intermediatesize innerdim dinner channel channels nchannels numchannels reschannel nreschannel "
        "nfilters numfilters nfeat nfeats numfeatures units numunits fcdim mlpdim netwidth netwidthfine "
        "rnndim lstmdim attentiondim prenetdim filterchannels interchannels upsampleinitialchannel "
        "ginchannels skipchannels residualchannels rnndims lstmdims fcdims",
    ),
    (
        "base",
        "ngf ndf nef basechannels basechannel basech basefilters convdim gconvdim dconvdim convdimg convdimd "
        "ngfilters ndfilters ch gch dch gfdim dfdim",
    ),
    ("widening", "widenfactor widenfact widen wideningfactor widthfactor"),
    (
        "inner",
        "perturbsteps attackiters attacksteps attackiterations pgdsteps pgditers numpgdsteps advsteps "
        "adviters nbiter pgditer attackiter numattacksteps stepsattack numattackiters innersteps "
        "numinnersteps "
        "mctssearches mctssims nummctssims nummctssearches nummctssimulations mctssimulations nplayout "
        "numsimulations nsimulations "
        "innerloopsteps langevinsteps numlangevinsteps mcmcsteps adaptationsteps adaptsteps "
        "numadaptationsteps innerupdates numinnerupdates",
    ),
    # Those of a film: a recurrent network has a whole picture for each.
    (
        "frames",
        "framesinput framesoutput nframesinput nframesoutput inputframes outputframes nframes numframes "
        "npast nfuture",
    ),
    # Only where a network divides its batch by them, as each of them would have a part of it.
    ("accelerators", "numgpus numgpu ngpus ngpu gpunum gpunums numdevices ndevices"),
    (
        "samples",
        "trainsize valsize testsize validsize numsamples nsamples numtrain ntrain numtrainsamples "
        "datasetsize epochsize ntrainsamples numdata ndata trainsamples numexamples samplesperepoch datasize "
        "samplesperscene samplespershape numpoints npoints numpoint npoint pointsperscene pointspershape "
        "numsnippets nsnippets numtrajs ntrajs numtrajectories ntrajectories numpairs npairs numtriplets "
        "generatednum numgenerated ngenerated samplesnum samplenum numsample nsample posnegsamples",
    ),
    ("tasks in all", "numtasks ntasks numtraintasks numtesttasks"),
    (
        "tasks",
        "tasknum taskmbsize metabatchsize metabatch metabatchsz tasksperbatch tasksperstep taskspermetabatch",
    ),
    ("shots", "shots shot kshot kshots numshots numshot nshot nshots trainshots trainshot kspt kqry kquery"),
    (
        "evaluation",
        "evaliters evaliterations numevaliters evalbatches valiters numvalbatches numevalbatches testiters "
        "evalepisodes numevalepisodes nevalepisodes numtestepisodes testepisodes testepisode evalepisode "
        "numtestepisode numevalepisode "
        "evaluationepisodes evaluationsize",
    ),
)
KINDS = {name: kind for kind, names in _NAMES for name in names.split()}
ENDINGS = re.compile(
    r"(batchsize|numworkers|buffersize|memorysize|replaysize|numenvs|evalepisodes|evaliters|embeddingdim|"
    r"embeddingsize|hiddendim|hiddensize|hiddenunits|embdim|rnndims?|rnnsize|lstmdims?|lstmsize|fcdims?|"
    r"attentiondim|prenetdim)$"
)
"""Of names that say more than that: ``teacher_eval_episodes``."""

HOOK = "_gradfix_reduced"
"""What compiled literals are given to, among the names that are built in."""
ARGUMENT = "_gradfix_reduced_argument"
"""The same for the literals that are arguments without a name."""
SIDE = "_gradfix_reduced_side"
"""The same for the sizes that the project's own transformations bring pictures to."""
PART = "_gradfix_reduced_part"
"""The same for literals that say where a data set is to be divided."""
SHORTER = "_gradfix_shorter"
"""The same for what loops over numbers go over."""
INNER = "_gradfix_inner"
"""The same for what loops go over that differentiate and make no step."""
WIDTH = "the width of a wide layer"
"""What is said of one that is a literal."""
REPEATS = "a literal that repeats a batch"
"""What is said of one in a shape."""
SHAPED = frozenset(
    "view reshape expand repeat zeros ones rand randn empty full resize_ new_zeros new_ones".split()
)
"""Functions that are told a shape, with the size of a batch first."""
NEXT = "_gradfix_next"
"""What the project's own loaders are decorated with."""
COUNTING = frozenset(
    "range xrange arange permutation randperm random_split Subset islice sample choice SubsetRandomSampler "
    "RandomSampler".split()
)
"""Functions that get the number of samples of a data set, or of a part of one."""
PARTS = 1000
"""The least number of samples that somebody divides a data set by, where that is shortened."""


def plain(name: str) -> str:
    """A name without what people write differently."""
    return name.lower().replace("_", "").replace("-", "")


PICTURES_OR_FEATURES = ("inputsize", "inputres", "inputdim")
"""Names that are those of pictures if the value is a side that networks for pictures are usually given."""
USUAL_SIDES = frozenset(
    (224, 227, 256, 288, 299, 300, 320, 352, 368, 384, 416, 448, 480, 512, 513, 600, 608, 640)
)


def kind_of(name: str) -> str:
    """Of which kind the size is that has a name, if that is known."""
    ending = ENDINGS.search(plain(name))
    return KINDS.get(plain(name)) or (KINDS[ending[1]] if ending else "")


def limit_of(run: context.Run, name: str, value: Any = None) -> int | None:
    """The limit for what is called so and has the value, if that is known."""
    name = plain(name)
    kind = kind_of(name)
    if name in PICTURES_OR_FEATURES and type(value) is int and value in USUAL_SIDES:
        kind = "picture"
    if kind:
        REDUCED.add(kind)
    return limits(run).get(kind)


def limits(run: context.Run) -> dict[str, int]:
    """The largest sizes in this run."""
    if run.medium:
        return MEDIUM
    found = {**SMALL, **TIGHT} if content.book.planned("sizes", "tight") else dict(SMALL)
    if content.book.planned("sizes", "too tight"):
        found["picture"] = SMALL["picture"]
    if content.book.planned("sizes", "accelerators"):
        found["accelerators"] = 1
    found["batch"] = content.book.planned("sizes", "batch") or found["batch"]
    for kind in content.book.planned("sizes", "kept") or ():
        found.pop(kind, None)
        if kind == "picture":
            found[kind] = MEDIUM[kind]
    return found


FRACTION = re.compile(
    r"found element of type float|'float' object cannot be interpreted as an integer|"
    r"must be .*int.*not '?float"
)
"""Messages where a fraction has the place of a size."""
TOO_SMALL = re.compile(
    r"[Oo]utput size is too small|Kernel size can't be greater than actual input size|"
    r"Padding size should be less"
)
"""Messages of a network with more layers than pictures of that size have pixels for."""
TOO_TIGHT = re.compile(TOO_SMALL.pattern + r"|more than 1 (?:spatial element|value per channel)")
"""The same where pictures are smaller still."""


SHORT_FILM = re.compile(f"index \\d+ is out of bounds for .* with size {TIGHT['frames']}$")
"""Messages of what goes on to more frames than there are in the shortest films."""


NO_BATCH = re.compile(r"batch_size should be a positive integer value, but got batch_size=0")


def advise(run: context.Run, error: BaseException) -> str | None:
    """A plan by which sizes of one kind stay as they are, if shapes do not fit for their being smaller."""
    message = str(error)
    kept = content.book.planned("sizes", "kept") or []
    if run.small and FRACTION.search(message) and "depth" in REDUCED - {*kept}:
        # ``2 ** (n_layers - 3)``, where that many layers are not left. Quotients are made whole first.
        if content.book.planned("python", "quotients"):
            return content.planned_with("sizes", "kept", sorted([*kept, "depth"]))
    if run.small and SHORT_FILM.search(message) and "frames" in REDUCED - {*kept}:
        return content.planned_with("sizes", "kept", sorted([*kept, "frames"]))
    if run.small and NO_BATCH.search(message) and "batch" in REDUCED - {*kept}:
        # It is divided among more accelerators than it holds samples now.
        return content.planned_with("sizes", "kept", sorted([*kept, "batch"]))
    if run.small and not run.medium and (wanted := within_a_batch(run, error)) is not None:
        return content.planned_with("sizes", "batch", wanted)
    if not run.small or run.medium or not isinstance(error, (RuntimeError, ValueError, AssertionError)):
        return None
    for kind in asked_about(run, error):
        if kind in REDUCED and kind in limits(run) and kind not in kept:
            return content.planned_with("sizes", "kept", sorted([*kept, kind]))
    if content.book.planned("sizes", "tight") and "picture" in REDUCED and TOO_TIGHT.search(message):
        if (wider := content.planned_with("sizes", "too tight", True)) is not None:
            return wider
    if TOO_SMALL.search(message) and "picture" in REDUCED - {*kept}:
        return content.planned_with("sizes", "kept", sorted([*kept, "picture"]))
    if "accelerators" in REDUCED and (shape := SHAPE.search(message)):
        wanted, had = math.prod(int(one) for one in re.findall(r"-?\d+", shape[1])), int(shape[2])
        alone = content.planned_with("sizes", "accelerators", True)
        if 0 < wanted < had and had % wanted == 0 and alone is not None:
            return alone
    for size in repeated_in(message):
        if "batch" in limits(run) and (plan := content.planned_with("sizes", "repeated", size)) is not None:
            return plan
    for kind in too_few_by(message):
        if kind in limits(run) and kind not in kept:
            return content.planned_with("sizes", "kept", sorted([*kept, kind]))
    numbers = {int(one) for one in re.findall(r"\d+", message)}
    if not re.search(r"shape|size|multipl|channels|match|expected", message, re.I):
        return None
    made_up = {*content.PRIMES, *content.book.primes.values()}
    if numbers & made_up or any(
        one % size == 0 for one in numbers if one for size in content.book.primes.values()
    ):
        return None
    if WIDTH in REDUCED and any(one and one % SMALL["width"] == 0 for one in numbers):
        if (wide := content.planned_with("sizes", "wide", True)) is not None:
            return wide
    # Pictures that are brought to smaller sizes are then brought to the script's own.
    others = {
        *kept,
        *(["picture"] if content.book.brought else []),
        *([] if APART.search(message) else ["batch"]),
    }
    # The sides of made-up pictures are mended where they are made up.
    sides = {dims[-1] for dims in content.book.dims.values() if dims[-2:] == [content.SIDE] * 2}
    held = {
        kind: limit
        for kind, limit in sorted(limits(run).items())
        if limit not in sides
        and kind in REDUCED
        and kind in (*NETWORK, "picture", "batch")
        and kind not in others
        and limit > 2
    }
    # One that is named before one that divides what is named.
    named = [kind for kind, limit in held.items() if limit in numbers and kind != "batch"]
    named += [
        kind for kind, limit in held.items() if limit > BATCH and any(n and n % limit == 0 for n in numbers)
    ]
    named += [kind for kind, limit in held.items() if kind == "batch" and limit in numbers]
    return content.planned_with("sizes", "kept", sorted([*kept, named[0]])) if named else None


LARGEST_BATCH = 64
"""The largest of the batches that are made so large that a script finds in them what it shows of one."""


def within_a_batch(run: context.Run, error: BaseException) -> int | None:
    """How large a batch has to be, if the script asks one for more samples than a smaller one has: it shows
    the first eight of them, ``for number in range(8): show(pictures[number])``."""
    limit, trace = limits(run).get("batch"), plans.innermost(error)
    if "batch" not in REDUCED or limit is None or trace is None or not isinstance(error, IndexError):
        return None
    indices = [
        int(index)
        for index, size in re.findall(r"index (\d+) is out of bounds for \w+ 0 with size (\d+)$", str(error))
        if int(size) == limit
    ]
    around = context.statements_at(run.tree(trace.tb_frame.f_code.co_filename), trace.tb_lineno)
    for node in ast.walk(around[-1]) if around and trace.tb_next is None else ():
        if isinstance(node, ast.Subscript):
            held = plans.read_in(node.value, node.value, trace.tb_frame)
            index = plans.whole_number(node.slice, trace.tb_frame)
            if isinstance(held, (list, tuple)) and len(held) == limit and index is not None:
                indices.append(index)
    highest = max(indices, default=0)
    return 1 << highest.bit_length() if limit <= highest < LARGEST_BATCH else None


def asked_about(run: context.Run, error: BaseException) -> list[str]:
    """The kinds of the sizes that the script refuses: ``assert args.num_envs % args.minibatches == 0``; or
    torch, where an unusual number of heads or groups has to divide features."""
    if DIVIDED.search(str(error)):
        return ["width", "base"]
    frame = context.raised_in(error)
    if frame is None or not run.owns(frame):
        return []
    around = context.statements_at(run.tree(frame.f_code.co_filename), frame.f_lineno)
    if around and isinstance(around[-1], ast.Assert):
        test: ast.expr = around[-1].test
    elif len(around) > 1 and isinstance(around[-1], ast.Raise) and isinstance(around[-2], ast.If):
        test = around[-2].test
    else:
        return []
    named = [getattr(node, "attr", "") or getattr(node, "id", "") for node in ast.walk(test)]
    return [KINDS[plain(name)] for name in named if plain(name) in KINDS]


DIVIDED = re.compile(r"must be divisible by (?:num_heads|num_groups|groups)")
"""Messages of torch's layers that divide their features."""
SHAPE = re.compile(r"shape '\[([-\d, ]+)\]' is invalid for input of size (\d+)")


def too_few_by(message: str) -> list[str]:
    """The kinds of sizes of which one is as many times smaller as a shape asks for more values."""
    found = SHAPE.search(message)
    if found is None or "-" in found[1]:
        return []
    wanted, had = math.prod(int(one) for one in found[1].split(",")), int(found[2])
    return [kind for kind, limit, size in sorted(SMALLER) if had * size == wanted * limit]


def repeated_in(message: str) -> list[int]:
    """The sizes of batches of which a message names both what they are now and what they were."""
    numbers = {int(one) for one in re.findall(r"\d+", message)}
    found = SHAPE.search(message)
    return [
        size
        for kind, limit, size in sorted(SMALLER)
        if kind == "batch"
        and size in numbers
        and (int(found[2]) % limit == 0 if found is not None else limit in numbers)
    ]


APART = re.compile(r"must match|got size|is invalid for input|broadcast|to match target")
"""Messages of sizes that a batch may be among."""
REDUCED: set[str] = set()
"""The kinds of sizes that were reduced in this run."""
SMALLER: set[tuple[str, int, int]] = set()
"""The sizes that were reduced: the kind of each, what it is now, and what it was."""


OPTIMIZERS = os.path.dirname(torch.optim.__file__)
AUTOGRAD = os.path.dirname(torch.autograd.__file__)


def advise_when_late(run: context.Run) -> str | None:
    """A plan for a run whose time was over: less of all, or of a loop without gradients if it was in one."""
    if run.recorder.backwards > 2 * IDLE and not run.recorder.steps:
        plan = advise_when_exhausted(run)
        if plan is not None:
            return plan
    plan = idle_loop(run)
    if plan is not None:
        return plan
    if not run.small or run.medium:
        return None
    kept = content.book.planned("sizes", "kept") or []
    if not run.recorder.backwards and "memory" in REDUCED - {*kept}:
        # A replay memory may have to hold more before learning begins than it has room for now.
        plan = content.planned_with("sizes", "kept", sorted([*kept, "memory"]))
        if plan is not None:
            return plan
    plan = None if run.recorder.backwards else guards.advise_when_late()
    plan = plan or content.planned_with("sizes", "tight", True)
    if plan is None and run.recorder.steps and any(long_loop(run, one.frame) for one in guards.stack()):
        return content.planned_with("loops", "without a step", True)
    return plan


def advise_when_early(run: context.Run) -> str | None:
    """A plan for a run that is in a loop that trains nothing, and is hardly at its end in time."""
    if not run.recorder.backwards:
        return idle_loop(run)
    step = run.recorder.last_step
    if run.recorder.steps == 1 and run.recorder.clock.elapsed() - step > LONGER * step:
        if any(long_loop(run, one.frame) for one in guards.stack()):
            return content.planned_with("loops", "without a step", True)
    return None


LONGER = 4
"""Times as long as it took to the last step what comes after that has taken, if it is not the next step."""


def idle_loop(run: context.Run) -> str | None:
    """The plan for a run that is in a long loop without gradients."""
    frame: types.FrameType | None = sys._getframe(1)
    looping = False
    while frame is not None and not looping:
        looping = run.owns(frame) and long_loop(run, frame)
        if frame.f_code.co_filename.startswith((OPTIMIZERS, AUTOGRAD)):
            break  # They switch gradients off, and are no loop of the script.
        frame = frame.f_back
    if looping and not torch.is_grad_enabled():
        return content.planned_with("loops", "idle", True)
    return None


def advise_when_exhausted(run: context.Run) -> str | None:
    """A plan for a run that spent its backward calls before a step of an optimizer that there is."""
    return content.planned_with("loops", "before a step", True) if run.recorder.optimizers else None


def long_loop(run: context.Run, frame: types.FrameType) -> bool:
    """Whether a frame is within a loop over numbers."""
    around = context.statements_at(run.tree(frame.f_code.co_filename), frame.f_lineno)
    return any(isinstance(one, ast.For) and guards.counted(one) is not None for one in around)


class Idle(ast.NodeTransformer):
    """Hands what loops over numbers go over to :data:`SHORTER`, or what others go over to :data:`INNER`."""

    def __init__(self) -> None:
        self.idle = any(content.book.planned("loops", one) for one in ("idle", "without a step"))
        self.inner = content.book.planned("loops", "before a step")

    def visit_For(self, node: ast.For) -> ast.AST:
        """``for step in reversed(range(1000))``."""
        self.generic_visit(node)
        if self.idle and guards.counted(node) is not None:
            node.iter = asked(SHORTER, [], node.iter)
        calls = {one.func.attr for one in ast.walk(node) if isinstance(one, ast.Call)
                 and isinstance(one.func, ast.Attribute)}  # fmt: skip
        if self.inner and calls & {"backward", "grad"} and "step" not in calls:
            node.iter = asked(INNER, [], node.iter)
        return node


def shorter(run: context.Run) -> None:
    """End long loops without gradients, or without a step where others were made, after a few turns, and
    those that differentiate before a step."""
    without_a_step = content.book.planned("loops", "without a step")

    def differentiating(over: Any) -> Any:
        for number, one in enumerate(over):
            if number >= IDLE:
                run.used("a loop that differentiates and makes no step", str(IDLE) + " turns")
                return
            yield one

    setattr(builtins, INNER, differentiating)

    def turns(over: Any) -> Any:
        long = (operator.length_hint(over) or TURNS) >= TURNS
        idle, steps = long and not torch.is_grad_enabled(), run.recorder.steps
        for number, one in enumerate(over):
            if idle and number >= IDLE and not torch.is_grad_enabled():
                run.used("a long loop without gradients", str(IDLE) + " turns")
                return
            if without_a_step and long and number >= IDLE and 0 < steps == run.recorder.steps:
                # To evaluate what is adapted to other tasks, or attacked: that differentiates, too.
                run.used("a long loop without a step", str(IDLE) + " turns")
                return
            yield one

    setattr(builtins, SHORTER, turns)


def is_flat(name: str, value: Any) -> bool:
    """Whether a picture's size is not that of a side."""
    return KINDS.get(plain(name)) == "picture" and value in FLAT


LASTING = 1_000_000
"""Steps in an environment that are those of a whole training, and not what a policy learns from at a time."""


def reduced(run: context.Run, what: str, name: str, value: Any) -> Any:
    """``value`` or, where ``name`` is that of a known size, at most its limit."""
    limit = limit_of(run, name, value)
    if KINDS.get(plain(name)) == "picture" and isinstance(value, (list, tuple)):
        if not all(type(side) is int for side in value):
            return value
        return type(value)(at_most(run, what, limit, side) for side in value)
    if KINDS.get(plain(name)) == "batch" and type(value) in (list, tuple):
        if all(type(one) is int for one in value):
            return type(value)(at_most(run, what, limit, one) for one in value)
        return value
    if isinstance(value, str) and WIDTHS.fullmatch(value) and content.book.planned("sizes", "tight"):
        run.used(what, "at most " + str(SMALL["width"]) + " in place of each of " + value)
        return re.sub(r"\d+", lambda one: str(min(int(one[0]), SMALL["width"])), value)
    if isinstance(value, str):
        return smaller_sides(run, what, name, value)
    if limit is None or not isinstance(value, (int, float)) or is_flat(name, value):
        return value
    return at_most(run, what, limit, value)


def smaller_pictures(run: context.Run, size: Any) -> Any:
    """A size that pictures are brought to, a side or two; there is mostly no name for it."""
    if not run.small or content.book.planned("pictures", "brought"):
        return size
    content.book.brought = True
    limit = limits(run)["picture"]
    if (part := content.book.planned("pictures", "part")) is not None:
        return fraction(run, size, part)
    if isinstance(size, (list, tuple)):
        content.book.sides.update((limit, side) for side in size if type(side) is int and side > limit)
        return type(size)(at_most(run, "pictures of " + str(side), limit, side) for side in size)
    if type(size) is int and size > limit:
        content.book.sides.add((limit, size))
    return at_most(run, "pictures of " + str(size), limit, size)


def fraction(run: context.Run, size: Any, part: int) -> Any:
    """A size of pictures, or two, divided: one kind of pictures may be some times as large as another."""
    if isinstance(size, (list, tuple)):
        return type(size)(fraction(run, side, part) for side in size)
    if type(size) is not int or size < 2 * part:
        return size
    run.used("pictures of " + str(size), str(size // part) + " in place of " + str(size))
    return size // part


WIDTHS = re.compile(r"[1-9]\d{2,4}(-[1-9]\d{2,4})+|[1-9]\d{2,4}(,[1-9]\d{2,4})+")
"""Widths of layers in one text."""
SIDES = re.compile(r"(\d{2,4})(\s*[,xX*]\s*)(\d{2,4})")
"""Width and height in one text."""


def smaller_sides(run: context.Run, what: str, name: str, value: str) -> str:
    """The text with smaller sides of a picture, if it is made of them: ``--input-size 1280,720``."""
    found = SIDES.fullmatch(value.strip())
    if not found or not re.search(r"size|crop|resol|shape|dims?$", name, re.I):
        return value
    limit = limits(run)["picture"]
    sides = [str(min(int(side), limit)) for side in found.group(1, 3)]
    if sides == list(found.group(1, 3)):
        return value
    smaller = sides[0] + found[2] + sides[1]
    run.used(what, smaller + " in place of " + value)
    return smaller


LOADER = "batches of a loader"
"""What is said of the size of batches that has no name."""


ALIGNED = 8
"""A side of one more than a multiple of this (321, 473, 513) stays such: networks that keep the corners of
pictures in their places insist on it."""


def side_of(what: str) -> int | None:
    """The side that pictures without a name for it are brought to."""
    found = re.fullmatch(r"pictures of (\d+)", what)
    return None if found is None else int(found[1])


def at_most(run: context.Run, what: str, limit: int | None, value: Any) -> Any:
    """``value`` or, if it is a whole number above the limit, the limit."""
    if limit is None or not isinstance(value, (int, float)) or isinstance(value, bool) or value <= limit:
        return value
    lasts = value >= LASTING and KINDS.get(plain(what.rpartition(" ")[2])) == "rollout"
    if lasts or value != int(value):
        return value
    if limit == SMALL["sound"]:
        # What divided it shall still do so: steps between windows may.
        part = int(value)
        while part > limit and part % 2 == 0:
            part //= 2
        limit = min(limit, part)
    kind = "batch" if what == LOADER else kind_of(what.rpartition(" ")[2])
    if (
        limit == limits(run).get("picture")
        and value % ALIGNED == 1
        and (kind == "picture" or value == side_of(what))
    ):
        limit += 1
    if what == WIDTH:
        REDUCED.add(what)
    SMALLER.add((kind, limit, int(value)))
    run.used(what, str(limit) + " in place of " + str(value))
    return type(value)(limit)


def reduced_settings(run: context.Run, value: Any) -> Any:
    """What a file of settings held, with the sizes in it reduced."""
    if isinstance(value, dict):
        return {
            key: reduced(run, "setting " + key, key, reduced_settings(run, inner))
            if isinstance(key, str)
            else inner
            for key, inner in value.items()
        }
    return [reduced_settings(run, inner) for inner in value] if type(value) is list else value


def is_number(node: ast.expr | None) -> bool:
    """Whether an expression is made of number literals."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("int", "float"):
        return len(node.args) == 1 and is_number(node.args[0])
    return node is not None and all(
        isinstance(one, (ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop))
        or (isinstance(one, ast.Constant) and type(one.value) in (int, float))
        for one in ast.walk(node)
    )


MEMORIES = re.compile(r"mem|buffer|replay|(?:\b|_)rb\b", re.I)
COLLECTS = re.compile(r"push|append|add|store|remember|memorize|put|insert|collect", re.I)
LEARNS = re.compile(r"backward|train|learn|updat|optim|fit|epoch", re.I)


class Reduce(ast.NodeTransformer):
    """Hands the literals of sizes to :data:`HOOK`, in the places that they have in the text."""

    def __init__(self, run: context.Run) -> None:
        self.run = run
        self.layers: set[ast.keyword] = set()
        """Arguments of torch's own layers, whose widths stand beside others without a name."""
        self.counted: set[ast.keyword] = set()
        """Arguments that say how many layers there are, beside a list with something for each."""

    def hooked(self, what: str, limit: int | None, value: Any) -> Any:
        """The expression that asks for a literal."""
        if limit is None or not is_number(value):
            return value
        return asked(HOOK, [ast.Constant(what), ast.Constant(limit)], value)

    def named(self, target: Any, value: Any) -> Any:
        """The value of what is called by a name or by an attribute's."""
        name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", target)
        if not isinstance(name, str):
            return value
        if isinstance(value, ast.Constant) and is_flat(name, value.value):
            return value
        if isinstance(value, (ast.Tuple, ast.List)) and KINDS.get(plain(name)) in ("picture", "batch"):
            limit = limit_of(self.run, name)
            value.elts = [self.hooked("constant " + name, limit, side) for side in value.elts]
            return value
        limit = limit_of(self.run, name, getattr(value, "value", None))
        if isinstance(value, ast.Dict) and kind_of(name) == "width" and is_by_number(value):
            for place, one in enumerate(value.values):
                said: list[ast.expr] = [ast.Constant("constant " + name), ast.Constant(limit)]
                value.values[place] = one if limit is None else asked(HOOK, said, one)
            return value
        return self.hooked("constant " + name, limit, value)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """``batch_size = 64``, ``self.batch_size = 64``, ``batch_size, rate = 64, 0.1``."""
        self.generic_visit(node)
        target = node.targets[-1]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            if len(target.elts) == len(node.value.elts):
                node.value.elts = [self.named(*pair) for pair in zip(target.elts, node.value.elts)]
        else:
            node.value = self.named(target, node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """``batch_size: int = 64``, a field of a settings object too."""
        self.generic_visit(node)
        node.value = self.named(node.target, node.value)
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        """``Settings(batch_size=64)``. ``deque(maxlen=...)`` is no sequence."""
        self.generic_visit(node)
        if node.arg is None or node.arg == "maxlen":
            return node
        if node in self.counted or (node in self.layers and KINDS.get(plain(node.arg)) == "width"):
            return node
        if KINDS.get(plain(node.arg)) in LONG and not is_number(node.value):
            said: list[ast.expr] = [
                ast.Constant("argument " + node.arg),
                ast.Constant(limit_of(self.run, node.arg)),
            ]
            node.value = asked(HOOK, said, node.value)
        else:
            node.value = self.named(node.arg, node.value)
        return node

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """A file, in which layers may be wide ones."""
        if content.book.planned("sizes", "tight") and not content.book.planned("sizes", "wide"):
            narrower(self, node)
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """``Network(256, 12)``: a function of the project says what its arguments are called."""
        function = node.func
        if hasattr(torch.nn, getattr(function, "attr", getattr(function, "id", ""))):
            self.layers.update(node.keywords)
        given = [*node.args, *(one.value for one in node.keywords)]
        lists = {len(one.elts) for one in given if isinstance(one, (ast.List, ast.Tuple))}
        for one in node.keywords:
            if kind_of(one.arg or "") == "depth" and getattr(one.value, "value", None) in lists:
                self.counted.add(one)
        self.generic_visit(node)
        name = getattr(function, "attr", getattr(function, "id", ""))
        if BRINGS.search(name) and node.args and sides_in(node.args[0]):
            node.args[0] = asked(SIDE, [ast.parse(ast.unparse(function), mode="eval").body], node.args[0])
            return node
        if name in COUNTING:
            node.args = [self.part(one) for one in node.args]
        elif name in ("reshape", "view"):
            self.shape(node)
        if name in SHAPED and (size := content.book.planned("sizes", "repeated")) is not None:
            self.repeated(node, size)
        while isinstance(function, ast.Attribute):
            function = function.value
        if isinstance(function, ast.Name):
            name = ast.unparse(node.func)
            for place, value in enumerate(node.args):
                if isinstance(value, ast.Starred):
                    break
                if isinstance(value, ast.Constant) and type(value.value) is int and value.value > LEAST:
                    # Parsed again, as no node may stand in two places.
                    said = [ast.parse(name, mode="eval").body, ast.Constant(place)]
                    node.args[place] = asked(ARGUMENT, said, value)
        return node

    def part(self, node: Any) -> Any:
        """A number of samples, or several in a list."""
        if isinstance(node, (ast.List, ast.Tuple)):
            node.elts = [self.part(one) for one in node.elts]
        value = node.operand if isinstance(node, ast.UnaryOp) else node
        number = value.value if isinstance(value, ast.Constant) else None
        if type(number) is int and number >= PARTS and number % samples.SHARE == 0:
            return asked(PART, [], node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """``pictures[:50000]`` of a data set that may have been shortened: samples come first."""
        self.generic_visit(node)
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        if isinstance(first, ast.Slice):
            first.lower, first.upper = self.part(first.lower), self.part(first.upper)
        return node

    def shape(self, node: ast.Call) -> None:
        """``pictures.reshape(60000, 784)``, ``numpy.reshape(pictures, (60000, 784))``: samples come first."""
        for place, one in enumerate(node.args):
            if isinstance(one, (ast.Tuple, ast.List)) and one.elts:
                one.elts[0] = self.part(one.elts[0])
            elif place == 0:
                node.args[0] = self.part(one)

    def repeated(self, node: ast.Call, size: int) -> None:
        """``labels.view(32, 1)``, ``torch.zeros((32, 10))``, where batches of 32 are smaller now."""
        shape = (
            node.args[0].elts if node.args and isinstance(node.args[0], (ast.Tuple, ast.List)) else node.args
        )
        if shape and isinstance(shape[0], ast.Constant) and shape[0].value == size:
            shape[0] = self.hooked(REPEATS, limits(self.run).get("batch"), shape[0])

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        """``def train(batch_size=64)``."""
        self.generic_visit(node)
        positional = [*node.posonlyargs, *node.args]
        given = positional[len(positional) - len(node.defaults) :]
        node.defaults = [self.named(one.arg, value) for one, value in zip(given, node.defaults)]
        node.kw_defaults = [
            self.named(one.arg, value) for one, value in zip(node.kwonlyargs, node.kw_defaults)
        ]
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        """``{"batch_size": 64}``."""
        self.generic_visit(node)
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        node.values = [self.named(*pair) for pair in zip(keys, node.values)]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """``len(memory) > 1000``: how full a memory has to be."""
        self.generic_visit(node)
        order = isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
        if order and len(node.ops) == 1 and counts(node.left) and MEMORIES.search(ast.unparse(node.left)):
            node.comparators = [self.hooked("transitions to wait for", FILL, node.comparators[0])]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """A class of the project that gives one batch after the other."""
        self.generic_visit(node)
        for one in node.body:
            if isinstance(one, ast.FunctionDef) and one.name == "__next__":
                one.decorator_list.append(ast.copy_location(ast.Name(NEXT, ast.Load()), one))
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        """``for _ in range(10000): memory.push(...)``, which trains nothing."""
        called = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
        names = [one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in called]
        filling = any(
            isinstance(one, ast.Attribute)
            and COLLECTS.search(one.attr)
            and MEMORIES.search(ast.unparse(one.value))
            for one in called
        )
        if filling and not any(LEARNS.search(name) for name in names):
            for inner in ast.walk(node.iter):
                if isinstance(inner, ast.Call) and getattr(inner.func, "id", "") in ("range", "xrange"):
                    turns = inner.args[-1] if starts_at_once(inner) else None
                    if turns is not None:
                        said: list[ast.expr] = [ast.Constant("transitions to collect"), ast.Constant(FILL)]
                        inner.args[-1] = asked(HOOK, said, turns)
        self.generic_visit(node)
        return node


def is_by_number(node: ast.Dict) -> bool:
    """Whether there is a width for each of some numbers: ``channels = {4: 512, 8: 512, 16: 256 * times}``."""
    numbers = [isinstance(one, ast.Constant) and type(one.value) is int for one in node.keys]
    return bool(numbers) and all(numbers) and any(is_number(one) for one in node.values)


def narrower(reduce: Reduce, tree: ast.Module) -> None:
    """Reduce the widths of wide layers that are literals: ``Linear(9216, 4096)``, ``Linear(4096, 4096)``.

    Only those that one layer of the file gives and one takes: others are those of pictures, or of classes.
    """
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {call: getattr(call.func, "attr", getattr(call.func, "id", "")) for call in calls}
    layers = [call for call in calls if hasattr(torch.nn, names[call])]
    taken, given = ({value_of(one.args[place]) for one in layers if one.args[1:]} for place in (0, 1))
    wide = {width for width in taken & given if width >= WIDE}
    for call in calls:
        if call in layers or names[call] in ("view", "reshape"):
            for place, one in enumerate(call.args):
                if value_of(one) in wide:
                    call.args[place] = reduce.hooked(WIDTH, SMALL["width"], one)


def value_of(node: ast.expr) -> int:
    """The whole number that is written, 0 for anything else."""
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else 0


BRINGS = re.compile(r"crop|resize|scale(?!r)", re.I)
"""Names of what brings pictures to the size that it is first told."""


def sides_in(node: ast.expr) -> bool:
    """Whether an expression is one or two sides of a picture."""
    sides = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
    return 1 <= len(sides) <= 2 and all(
        isinstance(one, ast.Constant) and type(one.value) is int and one.value > SMALL["picture"]
        for one in sides
    )


def asked(hook: str, said: list[ast.expr], value: ast.expr) -> ast.Call:
    """The expression that asks a hook about a value; the value's own place is also the question's."""
    call = ast.Call(ast.Name(hook, ast.Load()), [*said, value], [])
    inner = set(ast.walk(value))
    for node in ast.walk(call):
        if node not in inner:
            ast.copy_location(node, value)
    return call


def starts_at_once(turns: ast.Call) -> bool:
    """Whether a ``range`` begins with 0 or 1, so that its end is also how many turns it has."""
    if len(turns.args) == 1:
        return True
    first = turns.args[0] if len(turns.args) == 2 else None
    return isinstance(first, ast.Constant) and first.value in (0, 1)


def counts(node: ast.expr) -> bool:
    """Whether an expression says how many there are: ``len(it)``, ``it.size()``, ``it.size``."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    else:
        name = getattr(node, "attr", "")
    return bool(re.fullmatch(r"len|size|count|__len__|.*_cntr|.*_counter|n_entries|num_.*|length", name))


def code_of(run: context.Run, text: str, path: str) -> types.CodeType:
    """The compiled text of a file of the project, its sizes reduced if the run is to be small."""
    try:
        tree: Any = compile(text, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError:
        newer = library.as_today(text)
        if newer == text or path == run.script:
            raise
        tree = compile(newer, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        run.used(os.path.basename(path) + " for Python 2", "its statements as they are written today")
    if guards.planned():
        tree = guards.Guard(run, path).visit(tree)
    if run.small:
        tree = Reduce(run).visit(tree)
    if "loops" in content.book.plan:
        shorter(run)
        tree = Idle().visit(tree)
    if (only := library.only_values()) is not None:
        tree = only.visit(tree)
    if content.book.planned("numpy", "one element"):
        library.one_element(run)
        tree = library.OneElement().visit(tree)
    if content.book.planned("python", "mappings"):
        run.used("methods that mappings and iterators had in Python 2", "those of today")
        tree = library.OldMethods().visit(tree)
    if (older := library.old_results(run)) is not None:
        tree = older.visit(tree)
    if (weak := library.scalars(run)) is not None:
        tree = weak.visit(tree)
    tree = finder.as_python_2(path, tree)
    code: types.CodeType = compile(tree, path, "exec", dont_inherit=True)
    return code


def install(run: context.Run) -> None:
    """Load data in this process: a process for each loader costs more than it saves here."""
    import torch.utils.data as data

    real = data.DataLoader.__init__

    def batches(size: Any) -> Any:
        REDUCED.add("batch")
        limit = limits(run).get("batch")
        if limit and type(size) is int and size <= TIMES * limit and size % limit == 0:
            # Some times what a name says (pairs, batches without labels seven times as large) was computed
            # from a size that is reduced already; mostly a power of two was not.
            if size == 2 * limit or size & (size - 1):
                return size
        return at_most(run, LOADER, limit, size)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) > 5:
            args = (*args[:5], 0, *args[6:])
        elif kwargs.get("num_workers"):
            kwargs["num_workers"] = 0
        if not kwargs.get("num_workers"):
            for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"):
                kwargs.pop(name, None)
        if run.small:
            if len(args) > 1:
                args = (args[0], batches(args[1]), *args[2:])
            elif "batch_size" in kwargs:
                kwargs["batch_size"] = batches(kwargs["batch_size"])
        real(self, *args, **kwargs)

    context.replace(data.DataLoader, "__init__", init)
    own_code(run)
    empty_loops(run)
    if run.small:
        settings(run)
        short_loops(run)


def parameter_name(run: context.Run, function: Any, place: int) -> str | None:
    """What a function or class of the project calls the argument at a place, if it is one of them."""
    owner = vars(function).get("__init__") if isinstance(function, type) else function
    code = getattr(getattr(owner, "__func__", owner), "__code__", None)
    if code is None or not (code.co_filename == run.script or run.recorder.in_project(code.co_filename)):
        return None
    place += isinstance(function, (type, types.MethodType))
    return str(code.co_varnames[place]) if place < code.co_argcount else None


def own_code(run: context.Run) -> None:
    """Compile the project's code here; who imports the run's script gets the text under test."""

    def reduce(what: str, limit: int, value: Any) -> Any:
        return at_most(run, what, limit, value)

    def reduce_argument(function: Any, place: int, value: int) -> Any:
        name = parameter_name(run, function, place)
        return value if name is None else reduced(run, "argument " + name, name, value)

    def reduce_side(function: Any, size: Any) -> Any:
        # Those of libraries do so themselves.
        return size if parameter_name(run, function, 0) is None else smaller_pictures(run, size)

    def reduce_part(value: int) -> int:
        if not run.shortened or samples.share() == 1:
            return value
        fewer = abs(value) // samples.share()
        run.used("constant " + str(abs(value)) + " beside a shortened data set", str(fewer))
        return fewer if value > 0 else -fewer

    setattr(builtins, PART, reduce_part)
    setattr(builtins, HOOK, reduce)
    setattr(builtins, ARGUMENT, reduce_argument)
    setattr(builtins, SIDE, reduce_side)
    loader = importlib.machinery.SourceFileLoader
    real_code = loader.get_code

    def get_code(self: Any, fullname: str) -> Any:
        path = os.path.abspath(self.get_filename(fullname))
        if not os.path.isfile(path) and (overlay := files.overlay_of_run) is not None:
            # By a path that is relative to the folder in which the script is started.
            inside = os.path.relpath(path, run.cwd)
            path = self.path = os.path.abspath(overlay.reading(path if inside.startswith("..") else inside))
        if path == run.script:
            return code_of(run, run.source, path)
        if run.recorder.in_project(path):
            return code_of(run, importlib.util.decode_source(self.get_data(path)), path)
        return real_code(self, fullname)

    context.replace(loader, "get_code", get_code)


def settings(run: context.Run) -> None:
    """Reduce what is read from files of settings."""
    for name in ("load", "loads"):
        real = getattr(json, name)

        def read(*args: Any, _real: Any = real, **kwargs: Any) -> Any:
            found = _real(*args, **kwargs)
            return reduced_settings(run, found) if context.caller_of_standins(run) is not None else found

        context.replace(json, name, read)


def empty_loops(run: context.Run) -> None:
    """End a run that asks a loader again and again that has no batches: it would never end."""
    import torch.utils.data.dataloader as module

    real = module._BaseDataLoaderIter.__next__
    times = 0

    def following(self: Any) -> Any:
        nonlocal times
        try:
            found = real(self)
        except StopIteration:
            times += not getattr(self, "_gradfix_any", False)
            if times > ENDLESS:
                run.stop("a loader that is asked again and again has no batches")
            raise
        self._gradfix_any, times = True, 0
        return found

    context.replace(module._BaseDataLoaderIter, "__next__", following)


def asked_for_one(run: context.Run, frame: types.FrameType) -> bool:
    """Whether a frame asks for one batch by ``next``, as often as there should be batches."""
    here = context.following(frame, 0)
    alone = here is None or here.opname != "FOR_ITER"
    return alone and not absent.prepared(run, "StopIteration|Exception")


def evaluates(run: context.Run, frame: types.FrameType | None) -> bool:
    """Whether the project's loop that asks for a batch switches gradients off within it, and only that."""
    while frame is not None and not run.owns(frame):
        frame = frame.f_back
    if frame is None:
        return False
    around = context.statements_at(run.tree(frame.f_code.co_filename), frame.f_lineno)
    loops = [one for one in around if isinstance(one, ast.For)]
    calls = [one for one in ast.walk(loops[-1]) if isinstance(one, ast.Call)] if loops else []
    names = {getattr(one.func, "attr", getattr(one.func, "id", "")) for one in calls}
    off = any(one.arg == "volatile" for call in calls for one in call.keywords) or names & WITHOUT_GRADIENTS
    return bool(off) and not any(TRAINS.search(name) for name in names)


WITHOUT_GRADIENTS = frozenset(("no_grad", "inference_mode"))
"""What switches gradients off."""
TRAINS = re.compile(r"backward|train|learn|optim|^fit|^step$", re.I)
"""Names of what is called to learn from a batch; ``update`` may as well be that of a meter."""


def short_loops(run: context.Run) -> None:
    """End the loops over a loader in which nothing is trained."""
    import torch.utils.data.dataloader as module

    iterator = module._BaseDataLoaderIter
    real = iterator.__next__
    evaluated = 1 if content.book.planned("sizes", "tight") else EVALUATED

    def following(self: Any) -> Any:
        then, since = getattr(self, "_gradfix_idle", (run.recorder.backwards, 0))
        since = since + 1 if then == run.recorder.backwards else 1
        self._gradfix_idle = run.recorder.backwards, since
        most = UNTRAINED if torch.is_grad_enabled() else evaluated
        if evaluated < since <= UNTRAINED == most and evaluates(run, sys._getframe(1)):
            most = EVALUATED
        if since > most and not asked_for_one(run, sys._getframe(1)):
            run.used("a loop over a loader that trains nothing", str(most) + " batches")
            raise StopIteration
        return real(self)

    context.replace(iterator, "__next__", following)

    def decorated(given: Any) -> Any:
        @functools.wraps(given)
        def own(self: Any) -> Any:
            # What the project goes through in this way may also be words, but not where gradients are off.
            then, since = getattr(self, "_gradfix_idle", (run.recorder.backwards, 0))
            counts = not torch.is_grad_enabled() and hasattr(self, "__dict__")
            since = since + 1 if counts and then == run.recorder.backwards else 0
            if since > evaluated and not asked_for_one(run, sys._getframe(1)):
                self._gradfix_idle = then, 0
                run.used("a loop over a loader that trains nothing", str(evaluated) + " batches")
                raise StopIteration
            try:
                found = given(self)
            except StopIteration:
                since = 0
                raise
            finally:
                if counts:
                    self._gradfix_idle = run.recorder.backwards, since
            return found

        return own

    setattr(builtins, NEXT, decorated)
