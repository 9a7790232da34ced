"""The loops of monitoring: bets on one row after another, and their capital."""

# Compiled values have the types of NumPy arrays and scalars, which mypy distinguishes from Python's.
# mypy: disable-error-code="assignment, arg-type, call-arg, no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np

from caltest.loops import loop

# ------------------------------------------------------------------ capital


@loop
def mixed(logs: Any, weights: Any) -> Any:
    """Return the logarithm of a weighted sum, from logarithms of terms and weights."""
    most = -np.inf
    for k in range(len(logs)):
        most = max(most, logs[k] + weights[k])
    if np.isinf(most):
        return most
    total = 0.0
    for k in range(len(logs)):
        total += np.exp(logs[k] + weights[k] - most)
    return most + np.log(total)


#
# ``common`` holds the arguments shared by bets on classes and on numbers: stated and observed values of
# events, (n, D) each; the ends of units, (U,); ``member`` (n, C), the processes of every row, −1 for
# none; buffers for logarithms of the e-values of rows and their mean, for sums of events, and for the
# rows of a unit; logarithms of the weights of bets, and of the shares of processes; the goal; and the
# books.


@loop
def _settle(p: int, count: int, stated: Any, seen: Any, work: Any, weights: Any, books: Any) -> None:
    """Enter ``count`` rows of a unit, a row or a cluster, in the books of process ``p``: their mean."""
    each, ratios, gain, chosen = work
    logs, detect, low, since, marks, totals, counts, best, peak, whole, _ = books
    _mean_of(each, count, ratios)
    gain[:] = 0.0
    for i in range(count):
        for d in range(len(gain)):
            gain[d, 0] += stated[chosen[i], d] / count
            gain[d, 1] += seen[chosen[i], d] / count
    counts[p] += 1
    for d in range(len(gain)):
        totals[p, d, 0] += gain[d, 0]
        totals[p, d, 1] += gain[d, 1]
        totals[p, d, 2] += (gain[d, 1] - gain[d, 0]) ** 2
    for k in range(len(ratios)):
        logs[p, k] += ratios[k]
        if len(detect):  # (R + 1) times the ratio
            detect[p, k] = np.logaddexp(detect[p, k], 0.0) + ratios[k]
        if logs[p, k] < low[p, k]:
            low[p, k], since[p, k, 0], since[p, k, 1] = logs[p, k], int(whole[2]), counts[p]
            for d in range(len(gain)):
                marks[p, k, d, 0], marks[p, k, d, 1] = totals[p, d, 0], totals[p, d, 1]
    best[p] = mixed(detect[p] if len(detect) else logs[p], weights)
    peak[p] = max(peak[p], best[p])
    whole[4] = max(whole[4], p + 1)


@loop
def _sum_up(shares: Any, goal: float, books: Any) -> None:
    """Enter a unit in the total evidence: the weighted sum over all processes.

    Future groups have the remaining weight, and have won nothing; in a change detector they have not
    begun. Without groups, all rows have all of the weight, whose logarithm is 0.
    """
    _, detect, _, _, _, _, _, best, _, whole, _ = books
    known = int(whole[4])
    whole[0] = mixed(best[:known], shares[:known])
    if not len(detect) and shares[0] < 0.0:
        whole[0] = np.logaddexp(whole[0], -np.log(known + 1.0))
    whole[1] = max(whole[1], whole[0])
    if whole[5] < 0.0 and whole[0] >= goal:
        whole[5] = whole[2]


@loop
def _mean_of(each: Any, count: int, ratios: Any) -> None:
    """Write the logarithm of the mean of e-values (count, K), from their logarithms."""
    for k in range(len(ratios)):
        if count == 1:
            ratios[k] = each[0, k]
            continue
        most, total = -np.inf, 0.0
        for r in range(count):
            most = max(most, each[r, k])
        for r in range(count):
            total += np.exp(each[r, k] - most) if most < np.inf else 0.0
        ratios[k] = most + np.log(total / count) if most < np.inf else most


@loop
def _rows_of(member: Any, start: int, stop: int, c: int, unit: int, done: Any, chosen: Any) -> int:
    """Find the rows of a unit that share the process of row ``start``; none if it is already done."""
    p, count = member[start, c], 0
    if p < 0 or done[p] == unit:
        return 0
    done[p] = unit
    for r in range(start, stop):
        if member[r, c] == p:
            chosen[count] = r
            count += 1
    return count


# ------------------------------------------------------------------ classes


@loop
def _kept(ratio: float, of_event: float, side: int) -> float:
    """Return a bet, or none if it is on the other side of the limit; ``of_event`` is log q₁/l₁."""
    return 0.0 if side * of_event < 0.0 else ratio


@loop
def _mixture(won: float, rest: float, share: float) -> Any:
    """Return the bet on an outcome that is a share of one label, and the rest of the other."""
    return np.log(share * np.exp(won) + (1.0 - share) * np.exp(rest))


@loop
def _features(given: Any, waves: Any, shifts: Any, found: Any) -> None:
    """Write 1, the log-odds for two classes, and Fourier features of predictions (m,)."""
    found[0], first = 1.0, 1
    if len(given) == 2:
        odds = np.log(max(given[1], 1e-300)) - np.log(max(given[0], 1e-300))
        found[1], first = max(-2.0, min(2.0, odds / 4.0)), 2
    for f in range(len(shifts)):
        place = shifts[f]
        for k in range(len(given)):
            place += waves[f, k] * given[k]
        found[first + f] = np.cos(place)


@loop
def _grid_of_row(logs: Any, outcome: Any, side: int, slopes: Any, shifts: Any, found: Any) -> None:
    """Write the ratios of q ∝ g^slope, times e^shift for class 1 of two classes."""
    label, share = outcome
    m = len(logs)
    values = np.empty(m)
    for j in range(len(slopes)):
        most, total = -np.inf, 0.0
        for k in range(m):
            values[k] = slopes[j] * logs[k] if logs[k] > -np.inf else -np.inf
            if k == m - 1:
                values[k] += shifts[j]
            most = max(most, values[k])
        for k in range(m):
            total += np.exp(values[k] - most)
        norm = most + np.log(total)
        won = values[label] - norm - logs[label]
        if share < 1.0:
            won = _mixture(won, values[1 - label] - norm - logs[1 - label], share)
        found[j] = _kept(won, values[m - 1] - norm - logs[m - 1], side)


@loop
def _tilt(probs: Any, features: Any, columns: Any, theta: Any, found: Any) -> None:
    """Write the tilted probabilities, q ∝ g·exp(θᵀφ)."""
    m = len(probs)
    found[:] = 0.0
    for f in range(len(columns)):
        value = features[columns[f]]
        for k in range(m):
            found[k] += value * theta[f, k]
    most, total = -np.inf, 0.0
    for k in range(m):
        if probs[k] > 0.0:
            most = max(most, found[k])
    for k in range(m):
        found[k] = probs[k] * np.exp(min(found[k] - most, 0.0))
        total += found[k]
    for k in range(m):
        found[k] /= total


@loop
def _learn(q: Any, outcome: Any, features: Any, columns: Any, step: float, theta: Any, sq: Any) -> None:
    """Follow the gradient of the log loss by AdaGrad."""
    label, share = outcome
    for f in range(len(columns)):
        value = features[columns[f]]
        for k in range(len(q)):
            slope = (q[k] - (share if k == label else 1.0 - share)) * value
            sq[f, k] += slope * slope
            theta[f, k] -= step * slope / np.sqrt(sq[f, k])


@loop
def bet_on_classes(
    given: Any, bases: Any, labels: Any, parts: Any, sides: Any, spec: Any, learned: Any, common: Any
) -> None:
    """Bet on labels (n,) against ``bases`` (S, n, m), unit by unit.

    ``parts`` (n,) are 1; for two classes, an outcome may be a share above 0 of this label, and the rest
    of the other: bets are linear in the share, and fair if its mean is as predicted.

    ``sides`` (S,) is −1 if the base is least favourable to "too high", 1 to "too low", 0 without a
    limit.
    """
    waves, wave_shifts, slopes, shifts, columns, begins, steps = spec
    theta, squares = learned
    stated, seen, ends, member, work, weights, shares, goal, books = common
    (each, _, _, chosen), done, whole = work, books[10], books[9]
    n_sides, m, grid, tilts = len(sides), given.shape[1], len(slopes), len(steps)
    own, longest, start = grid + tilts, len(each), 0
    phi = np.empty((longest, (2 if m == 2 else 1) + len(wave_shifts)))
    fixed, certain = np.empty((longest, n_sides, grid)), np.empty((longest, n_sides), np.bool_)
    logs, q = np.empty(m), np.empty((n_sides, tilts, m))
    for u in range(len(ends)):
        stop = ends[u]
        for r in range(start, stop):
            i = r - start
            _features(given[r], waves, wave_shifts, phi[i])
            for s in range(n_sides):
                for k in range(m):
                    logs[k] = np.log(bases[s, r, k]) if bases[s, r, k] > 0.0 else -np.inf
                none = logs[labels[r]] == -np.inf or (parts[r] < 1.0 and bases[s, r].min() == 0.0)
                certain[i, s] = none or (sides[s] and bases[s, r].min() == 0.0)
                if certain[i, s]:  # nothing to bet on, or an impossible label
                    fixed[i, s] = 0.0 if sides[s] else np.inf
                else:
                    _grid_of_row(logs, (labels[r], parts[r]), sides[s], slopes, shifts, fixed[i, s])
        whole[2], whole[3] = whole[2] + (stop - start), whole[3] + 1.0
        for c in range(member.shape[1]):
            for r in range(start, stop):
                size, p = _rows_of(member, r, stop, c, u, done, chosen), member[r, c]
                if not size:
                    continue
                for i in range(size):
                    row = chosen[i]
                    for s in range(n_sides):
                        base, label, at = bases[s, row], labels[row], s * own
                        each[i, at : at + grid] = fixed[row - start, s]
                        if certain[row - start, s]:
                            each[i, at + grid : at + own] = fixed[row - start, s, 0]
                            continue
                        for t in range(tilts):
                            a, b = begins[t], begins[t + 1]
                            _tilt(base, phi[row - start], columns[a:b], theta[p, s, a:b], q[s, t])
                            won = np.log(max(q[s, t, label], 1e-300)) - np.log(base[label])
                            if parts[row] < 1.0:
                                rest = np.log(max(q[s, t, 1 - label], 1e-300)) - np.log(base[1 - label])
                                won = _mixture(won, rest, parts[row])
                            stated_chance = np.log(max(base[m - 1], 1e-300))
                            of_event = np.log(max(q[s, t, m - 1], 1e-300)) - stated_chance
                            each[i, at + grid + t] = _kept(won, of_event, sides[s])
                _settle(p, size, stated, seen, work, weights, books)
                for i in range(size):  # learn no label of a cluster before its whole unit is entered
                    row, known = chosen[i], phi[chosen[i] - start]
                    for s in range(n_sides):
                        for t in range(0 if certain[row - start, s] else tilts):
                            a, b = begins[t], begins[t + 1]
                            of, tilt, sums = columns[a:b], theta[p, s, a:b], squares[p, s, a:b]
                            if size > 1:
                                _tilt(bases[s, row], known, of, tilt, q[s, t])
                            _learn(q[s, t], (labels[row], parts[row]), known, of, steps[t], tilt, sums)
        _sum_up(shares, goal, books)
        start = stop


# ------------------------------------------------------------------ numbers


@loop
def _density(theta: Any, waves: Any, found: Any) -> None:
    """Write the density exp(θᵀψ) in cells of equal width, divided by its mean."""
    total = 0.0
    for c in range(len(found)):
        value = 0.0
        for f in range(len(theta)):
            value += theta[f] * waves[f, c]
        found[c] = np.exp(min(value, 600.0))
        total += found[c]
    for c in range(len(found)):
        found[c] *= len(found) / total


@loop
def _mean_over(density: Any, low: float, high: float, waves: Any, mean: Any) -> Any:
    """Return the mean density from low to high, and write the mean of the features, weighted by it."""
    cells = len(density)
    first, last = min(int(low * cells), cells - 1), min(int(high * cells), cells - 1)
    mean[:] = 0.0
    if first == last or not high > low:
        mean[:] = waves[:, first]
        return density[first]
    total = 0.0
    for c in range(first, last + 1):
        width = min(high * cells, c + 1.0) - max(low * cells, float(c))
        total += width * density[c]
        for f in range(len(mean)):
            mean[f] += width * density[c] * waves[f, c]
    for f in range(len(mean)):
        mean[f] /= max(total, 1e-300)
    return total / ((high - low) * cells)


@loop
def _least(density: Any, low: Any, high: Any, edges: Any, waves: Any, mean: Any, own: Any) -> Any:
    """Return the mean density over (low, high); for cells between edges, the smallest of open cells."""
    if not len(edges):
        return _mean_over(density, low, high, waves, mean)
    least = np.inf
    for c in range(int(low), int(high) + 1):
        here = _mean_over(density, edges[c], edges[c + 1], waves, own)
        if here < least:
            least = here
            mean[:] = own
    return least


@loop
def bet_on_numbers(low: Any, high: Any, edges: Any, spec: Any, learned: Any, common: Any) -> None:
    """Bet on the places of outcomes, from F(y−) to F(y), against a uniform law, unit by unit.

    For quantile forecasts, ``low`` and ``high`` are the first and the last cell that may hold the
    outcome, between ``edges``; the bet gets its value in the worst of them.
    """
    waves, densities, steps = spec
    theta, squares = learned
    stated, seen, ends, member, work, weights, shares, goal, books = common
    (each, _, _, chosen), done, whole = work, books[10], books[9]
    grid, tilts, start = len(densities), len(steps), 0
    density, (mean, own, centre) = np.empty(waves.shape[1]), np.zeros((3, len(waves)))
    for u in range(len(ends)):
        stop = ends[u]
        whole[2], whole[3] = whole[2] + (stop - start), whole[3] + 1.0
        for c in range(member.shape[1]):
            for r in range(start, stop):
                size, p = _rows_of(member, r, stop, c, u, done, chosen), member[r, c]
                if not size:
                    continue
                for j in range(grid + tilts):
                    if j >= grid:
                        _density(theta[p, j - grid], waves, density)
                    bet = density if j >= grid else densities[j]
                    for i in range(size):
                        row = chosen[i]
                        here = _least(bet, low[row], high[row], edges, waves, mean, own)
                        each[i, j] = np.log(max(here, 1e-300))
                _settle(p, size, stated, seen, work, weights, books)
                for t in range(tilts):
                    for i in range(size):
                        row = chosen[i]
                        _density(theta[p, t], waves, density)
                        _least(density, low[row], high[row], edges, waves, mean, own)
                        _mean_over(density, 0.0, 1.0, waves, centre)
                        for f in range(len(mean)):
                            slope = centre[f] - mean[f]
                            squares[p, t, f] += slope * slope
                            theta[p, t, f] -= steps[t] * slope / np.sqrt(squares[p, t, f])
        _sum_up(shares, goal, books)
        start = stop
