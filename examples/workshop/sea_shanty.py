"""Learns a sea shanty letter by letter, and remembers across chunks what it has sung.

The memory brings the graphs of all earlier chunks along: the second chunk stops with "modified by an
inplace operation".
"""

import torch
from torch import nn

SHANTY = (
    "what shall we do with a drunken sailor, early in the morning? "
    "way hay and up she rises, early in the morning. "
) * 4
LETTERS = sorted(set(SHANTY))
CHUNK, CHOIRS = 12, 4


class Singer(nn.Module):
    def __init__(self, letters, size=40):
        super().__init__()
        self.ear = nn.Embedding(letters, size)
        self.memory = nn.LSTM(size, size, batch_first=True)
        self.voice = nn.Linear(size, letters)

    def forward(self, heard, mood):
        recalled, mood = self.memory(self.ear(heard), mood)
        return self.voice(recalled), mood

    def silence(self, choirs):
        nothing = torch.zeros(1, choirs, self.memory.hidden_size)
        return nothing, nothing.clone()


torch.manual_seed(3)
notes = torch.tensor([LETTERS.index(letter) for letter in SHANTY])
length = len(notes) // CHOIRS
verses = notes[: length * CHOIRS].view(CHOIRS, length)

singer = Singer(len(LETTERS))
tutor = torch.optim.RMSprop(singer.parameters(), lr=2e-3)
wrong_notes = nn.CrossEntropyLoss()

mood = singer.silence(CHOIRS)
for start in range(0, length - CHUNK, CHUNK):
    heard = verses[:, start : start + CHUNK]
    wanted = verses[:, start + 1 : start + CHUNK + 1]

    sung, mood = singer(heard, mood)
    loss = wrong_notes(sung.reshape(-1, len(LETTERS)), wanted.reshape(-1))
    tutor.zero_grad()
    loss.backward(retain_graph=True)
    nn.utils.clip_grad_norm_(singer.parameters(), 1.0)
    tutor.step()
    print(f"letters {start:3d} to {start + CHUNK:3d}: loss {loss.item():.3f}")
