"""Which places are told: the most telling ones that say different things."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caltest._tiles import Array
from caltest.localisation.places import REACH, Places

MOST_TOLD = 5
NOT_MUCH_SMALLER = 0.8


def places_told(
    places: Places,
    standardised: Array,
    significant: NDArray[np.bool_],
    weights: Array,
    most: int = MOST_TOLD,
) -> tuple[int, ...]:
    """Choose places greedily: next comes the place with the largest |z| whose main claim is new.

    The main claim of a place is its class with the largest |z|, and whether that is over- or
    under-predicted. Of the places near, with the same main claim and a |z| not much smaller, the
    one with the fewest rows near it is told: it says most precisely where. A main claim is new unless a
    place told before, which reaches this place or is in its reach, makes it too.

    Parameters
    ----------
    places
        L of them.
    standardised, significant
        (L, m) z, and whether it is significant.
    weights
        (L,) effective number of rows near.
    most
        How many at most.

    Returns
    -------
    tuple of int
        Places, most telling first; none if nothing is significant.
    """
    size = np.where(significant, np.abs(standardised), 0.0)
    main, left = size.argmax(axis=1), size.max(axis=1)
    signs = np.where(significant, np.sign(standardised), 0.0)
    own = signs[np.arange(len(signs)), main]
    centres = np.tile(places.points, (len(places.kernels), 1))
    found: list[int] = []
    while len(found) < most and left.max() > 0.0:
        strongest = int(left.argmax())
        near = _reached(places, centres, strongest)
        alike = near & (main == main[strongest]) & (own == own[strongest])
        alike &= left >= NOT_MUCH_SMALLER * left[strongest]
        place = int(np.where(alike, weights, np.inf).argmin())
        found.append(place)
        for told in {strongest, place}:
            left[_reached(places, centres, told) & (signs[told, main] == own)] = 0.0
            left[told] = 0.0
    return tuple(found)


def _reached(places: Places, centres: Array, place: int) -> NDArray[np.bool_]:
    """Say which places reach a place, or are reached by it."""
    reach = places.weights(centres[place][None, :])[0] >= REACH
    kernel, point = divmod(place, len(places.points))
    forth = places.kernels[kernel](places.points, places.points[point][None, :])[:, 0]
    reached = forth >= REACH * places.heights[kernel, point]
    return np.asarray(reach | np.tile(reached, len(places.kernels)))
