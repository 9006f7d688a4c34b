from __future__ import annotations

import os

import numpy as np

from lake_core.planning.compaction.claims import FREE, Claims
from lake_core.planning.compaction.islands import islands

STEP = float(os.environ.get("STEP", "1.5"))
NEAR = float(os.environ.get("NEAR", "0.75"))
IN = float(os.environ.get("IN", "0.67"))
WIDE = float(os.environ.get("WIDE", "0.5"))


def claim_ripe(claims: Claims, members) -> None:
    layout, policy = claims.layout, claims.policy
    members = np.asarray(members, np.int64)
    if len(members) < 2:
        return
    mass = np.diff(layout.held)
    klass = np.floor(np.log(layout.share) / np.log(STEP) + 1e-9).astype(int)
    n = len(layout.bounds)
    begin, end, share = layout.begin, layout.end, layout.share

    def density(some):
        steps = np.bincount(begin[some], share[some], n) - np.bincount(end[some], share[some], n)
        return np.concatenate((np.zeros(1), np.cumsum(np.maximum(np.cumsum(steps)[:-1], 0) * mass)))

    for c in sorted(set(klass[members].tolist()), reverse=True):
        free = members[claims.held[members] == FREE]
        some = free[klass[free] <= c]
        top = some[klass[some] == c]
        if len(some) < 2 or not len(top):
            continue
        d = density(some)
        growth = (d[end[top]] - d[begin[top]]) / layout.size[top]
        if not (growth >= policy.ratio).any():
            continue
        core = top[growth >= NEAR * policy.ratio]
        # region: union of spans of ripe; near ones only if island has a ripe one
        cover = (
            np.cumsum(np.bincount(begin[core], minlength=n) - np.bincount(end[core], minlength=n))[:-1] > 0
        )
        inside = np.concatenate((np.zeros(1), np.cumsum(mass * cover)))
        thin = some[klass[some] < c]
        part = (inside[end[thin]] - inside[begin[thin]]) / np.maximum(
            layout.held[end[thin]] - layout.held[begin[thin]], 1.0
        )
        chosen = np.concatenate((core, thin[part >= IN]))
        for island in islands(layout, chosen.tolist()):
            isl = np.array(island)
            ripe = set(top[growth >= policy.ratio].tolist())
            if not ripe & set(island):
                continue
            why = f"{len(island)} alike"
            if claims.fits(len(island), int(layout.size[isl].sum())):
                claims.claim(island, why)
                continue
            total = float(layout.size[isl].sum())
            span = layout.between(int(begin[isl].min()), int(end[isl].max()))
            pieces = max(total / policy.most_bytes, len(island) / policy.most_inputs)
            wide = (layout.held[end[isl]] - layout.held[begin[isl]]) > WIDE * span / pieces
            narrow = isl[~wide].tolist()
            for portion in claims.portions(narrow):
                for piece in islands(layout, portion):
                    claims.claim(piece, why)
            for portion in claims.portions(sorted(isl[wide].tolist(), key=claims.arrival.__getitem__)):
                for piece in islands(layout, portion):
                    claims.claim(piece, why)
