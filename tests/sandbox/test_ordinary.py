"""Ordinary scripts run in the sandbox as they run without it."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace

import pytest
from redteam import LANDLOCK, LEVEL, WHY, Attack, Yard, bubblewrap

from gradfix.runtime.sandbox import levels
from gradfix.verify.jobs import Limits

pytest_plugins = ("redteam",)

ROOMY = Limits(seconds=30)

SCRIPTS: dict[str, tuple[str, str]] = {
    "loader with workers": (
        """
import torch
from torch.utils.data import DataLoader, Dataset
class Numbers(Dataset):
    def __len__(self): return 6
    def __getitem__(self, index): return torch.full((2,), float(index)), index
for x, y in DataLoader(Numbers(), batch_size=3, num_workers=2, persistent_workers=True):
    print(x.sum().item(), y.tolist())
""",
        "6.0 [0, 1, 2]\n24.0 [3, 4, 5]\n",
    ),
    "checkpoints": (
        """
import torch
torch.save({"w": torch.ones(2)}, "model.pt")
os.makedirs("checkpoints/last", exist_ok=True)
torch.save(torch.nn.Linear(2, 2).state_dict(), "checkpoints/last/linear.pt")
print(torch.load("model.pt")["w"].tolist(), sorted(torch.load("checkpoints/last/linear.pt")))
""",
        "[1.0, 1.0] ['bias', 'weight']\n",
    ),
    "multiprocessing": (
        """
import multiprocessing as mp
def work(queue, lock, value):
    with lock: queue.put(value * 2)
with mp.Pool(2) as pool: print(pool.map(abs, [-1, 2, -3]))
queue, lock, total = mp.Queue(), mp.Lock(), mp.Value("i", 3)
workers = [mp.Process(target=work, args=(queue, lock, n)) for n in (1, 2)]
for one in workers: one.start()
print(sorted(queue.get() for _ in workers), total.value)
for one in workers: one.join()
""",
        "[1, 2, 3]\n[2, 4] 3\n",
    ),
    "executors": (
        """
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
with ThreadPoolExecutor(4) as threads: print(list(threads.map(abs, [-1, -2])))
with ProcessPoolExecutor(2) as processes: print(list(processes.map(abs, [-3, -4])))
""",
        "[1, 2]\n[3, 4]\n",
    ),
    "other programs": (
        """
import subprocess
print(subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True).stdout.strip())
print(subprocess.run("echo a | tr a b", shell=True, text=True, capture_output=True).stdout.strip())
one = subprocess.Popen(["sleep", "30"], start_new_session=True); one.terminate(); print(one.wait())
""",
        "42\nb\n-15\n",
    ),
    "temporary files": (
        """
import shutil, tempfile
with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w+") as file:
    file.write("x"); file.flush()
    shutil.copy(file.name, folder + "/copy"); shutil.copy2(file.name, folder + "/second")
    shutil.copytree(folder, "tree"); shutil.make_archive("all", "zip", folder)
    print(sorted(os.listdir(folder)), open("tree/copy").read())
os.rename("tree", "moved"); shutil.rmtree("moved")
print(os.path.expanduser("~") == tempfile.gettempdir(), os.getcwd() == os.path.dirname(__file__))
""",
        "['copy', 'second'] x\nTrue True\n",
    ),
    "data of the project": (
        """
from pathlib import Path
print(Path(__file__).with_name("data.txt").read_text(), end="")
print(open(PROJECT + "/src/more.txt").read(), end="")
print("data.txt" in os.listdir(PROJECT), ".env" not in os.listdir(PROJECT + "/src"))
""",
        "some data\nmore data\nTrue True\n",
    ),
    "a module of the project": ("import helper\nprint(helper.ANSWER)", "42\n"),
    "what the machine has": (
        """
import platform
print(os.cpu_count() > 0, len(os.sched_getaffinity(0)) > 0, "MemTotal" in open("/proc/meminfo").read())
print("VmRSS" in open("/proc/self/status").read(), int(open("/proc/self/statm").read().split()[1]) > 0)
print(platform.node() != "", time.localtime().tm_year > 2000, len(os.urandom(8)))
""",
        "True True True\nTrue True\nTrue True 8\n",
    ),
    "asyncio": (
        """
import asyncio
async def main():
    done = await asyncio.create_subprocess_exec("echo", "spoken", stdout=asyncio.subprocess.PIPE)
    return (await done.communicate())[0]
print(asyncio.run(main()))
""",
        "b'spoken\\n'\n",
    ),
    "a process group of one": (
        """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29500", rank=0, world_size=1)
model = DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
model(torch.ones(3, 2)).sum().backward()
total = torch.ones(1); dist.all_reduce(total)
print(model.module.weight.grad.tolist(), total.item(), dist.get_world_size())
dist.destroy_process_group()
""",
        "[[3.0, 3.0]] 1.0 1\n",
    ),
    "shared tensors": (
        """
import torch
import torch.multiprocessing as mp
def add(tensor): tensor += 1
tensor = torch.zeros(2).share_memory_()
workers = [mp.Process(target=add, args=(tensor,)) for _ in range(2)]
for one in workers: one.start(); one.join()
print(tensor.tolist())
""",
        "[2.0, 2.0]\n",
    ),
}

NEED_SHARED_MEMORY = {"multiprocessing", "executors", "shared tensors"}

LEVELS: dict[str, levels.Level | str] = {
    "here": LEVEL or f"no sandbox here: {WHY}",
    "abi-1": "no Landlock here" if LANDLOCK is None else LANDLOCK._replace(newest=1),
    "bubblewrap": bubblewrap(),
    "without": levels.UNSANDBOXED,
}


@pytest.mark.parametrize(
    "mode", ["here", "abi-1", "without", pytest.param("bubblewrap", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("name", SCRIPTS)
def test_an_ordinary_script_runs(name: str, mode: str, yard: Yard, attack: Attack) -> None:
    level = LEVELS[mode]
    if isinstance(level, str):
        pytest.skip(level)
    if name in NEED_SHARED_MEMORY and not level.memory and level != levels.UNSANDBOXED:
        pytest.skip("the system gives no private shared memory")
    (yard.project / "helper.py").write_text("ANSWER = 42\n")
    code, expected = SCRIPTS[name]
    recording = attack(level, code, apart=False, limits=ROOMY)
    assert recording.output.startswith(expected), (
        recording.output,
        recording.uncaught,
        recording.detail,
    )
    assert recording.ending == "finished"


def test_loaders_do_without_workers_where_there_is_no_shared_memory(attack: Attack) -> None:
    if LANDLOCK is None:
        pytest.skip("no Landlock here")
    code, expected = SCRIPTS["loader with workers"]
    recording = attack(LANDLOCK._replace(memory=False, newest=98), code, apart=False, limits=ROOMY)
    assert recording.output.startswith(expected) and recording.ending == "finished", recording


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="there is no matplotlib here")
def test_figures_are_drawn(attack: Attack) -> None:
    if LEVEL is None:
        pytest.skip(WHY)
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.savefig('f.png')\n"
    code += "print(os.path.getsize('f.png') > 100)"
    recording = attack(LEVEL, code, apart=False, limits=replace(ROOMY, seconds=60))
    assert recording.output.startswith("True") or "True" in recording.output, (recording.output, sys.path)
