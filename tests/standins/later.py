"""Small training scripts whose modules ask for more than the rest of them, and what must be told of them."""

from __future__ import annotations

from tests.standins.programs import program

LATER: dict[str, tuple[str, tuple[str, ...]]] = {
    "functions with decorators of a missing module": (
        program("""
            import inspect
            import nowhere_at_all
            @torch.no_grad()
            @nowhere_at_all.retry(times=3)
            def shown(model, other=2):
                return model.weight.mean()
            class Report:
                @nowhere_at_all.checked
                @staticmethod
                def title(text):
                    return text
                @nowhere_at_all.checked("no plot")
                def __plot(self):
                    assert self
            assert callable(Report.title) and "other" in inspect.signature(shown).parameters
            def batch():
                return torch.ones(2, 3)
        """),
        ("nowhere_at_all",),
    ),
    "tensors for numbers": (
        program("""
            import gym
            def shown(loss):
                return loss.data[0]
            kept = torch.nn.Linear(2, 1)
            values = torch.Tensor(tuple(kept(torch.ones(1, 2)) for _ in range(3)))
            assert values.shape == (3,)
            def batch():
                return torch.ones(2, 3)
        """),
        (),
    ),
    "networks that a hub lists": (
        program("""
            names = ["own"] + torch.hub.list("somebody/networks:main")
            assert names == ["own"]
            def batch():
                return torch.ones(2, 3)
        """),
        ("networks of somebody/networks:main",),
    ),
    "devices by their numbers": (
        program("""
            import copy
            import pickle
            def placed(rank):
                device = torch.device(rank)
                assert isinstance(device, torch.device) and isinstance(torch.device("cpu"), torch.device)
                assert device == torch.device("cuda", rank) and device.index == rank
                assert copy.deepcopy(device) == device == pickle.loads(pickle.dumps(device))
                return torch.ones(2, 3, device=device).to(device)
            def batch():
                return placed(0)
        """),
        ("a device by its number",),
    ),
}
