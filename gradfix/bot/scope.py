"""The scope of a plan: only within it is a missing rewrite a reason to close an earlier proposal."""

from __future__ import annotations

from collections.abc import Collection

from gradfix.bot.plan import PlanFile
from gradfix.bot.replay import Base
from gradfix.bot.standing import Standing
from gradfix.bot.state import Key
from gradfix.core.codemod import Effect


class ScopeOf:
    """What a plan is about, in the terms of the base branch."""

    def __init__(self, plan: PlanFile, base: Base) -> None:
        self._plan = plan
        self._base = base

    def covers(self, key: Key) -> bool:
        """Whether the plan is about a mistake."""
        return self._plan.scope.covers(key.codemod, self._place(key))

    def why_kept(self, dropped: Collection[Key], planned: Collection[Key], stand: Standing) -> str:
        """Why a pull request is to keep what it holds; empty if it may be taken out.

        Args:
            dropped: What it holds, and would not hold any more.
            planned: What the plan has a rewrite for, whether or not that is proposed.
            stand: Where ``dropped`` stands on the base branch.
        """
        for key in sorted(dropped):
            if key in stand.unknown:
                return f"at the moment this cannot be analysed: {stand.unknown[key]}"
            if self._place(key) in self._plan.scope.failed:
                return f"it also holds a fix for {key.path}, which could not be analysed for this plan"
            if not self.covers(key) or (key in stand.there and not self._has_judged(key, stand)):
                return f"it also holds a fix for {key.path}, which this plan is not about"
            if key in planned:
                return f"what it holds for {key.path} could not be verified this time"
        return ""

    def _has_judged(self, key: Key, stand: Standing) -> bool:
        """Whether the plan leaves out a mistake that is there because it has looked at it."""
        allowed = self._plan.unsafe_fixes or stand.there[key] != {Effect.CHANGES}
        return allowed and self._place(key) in self._plan.scope.found

    def _place(self, key: Key) -> str:
        """The file of a mistake, as it is called now."""
        return self._base.moved.get(key.path, key.path)
