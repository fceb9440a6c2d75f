"""What models with one layer of hidden units share: the widths, and checks of states."""

from __future__ import annotations

from torch import Tensor

from paperlib.validation import as_states


class TwoLayers:
    """A model with visible and hidden units whose `weights` are [D, M]."""

    weights: Tensor

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.num_visible} visible, {self.num_hidden} hidden)"

    @property
    def num_visible(self) -> int:
        """Number of visible units, D."""
        return self.weights.shape[0]

    @property
    def num_hidden(self) -> int:
        """Number of hidden units, M."""
        return self.weights.shape[-1]

    def _visible(self, v: object) -> Tensor:
        return as_states("v", v, self.weights, self.num_visible)

    def _hidden(self, h: object) -> Tensor:
        return as_states("h", h, self.weights, self.num_hidden)
