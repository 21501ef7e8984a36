"""Fit the built-in Criteo law: log-normals cut at 30 days, and a point mass, to a density of log10 delays.

    python scripts/fit_criteo_law.py [FOLDER]

FOLDER holds `log10_seconds.txt` and `density.txt`. Prints the constants of `src/latecomer/delays/laws/criteo.py`, and
how far the law that they make is from the density. Nothing is random: the same density gives the same constants.
"""

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares
from scipy.special import ndtr

Floats = npt.NDArray[np.float64]

DENSITY = Path(__file__).parents[2] / "shared" / "data" / "criteo_delays"
COMPONENTS = 8
END = np.log10(30 * 24 * 3600)  # the window of the data, where every component is cut
STRIDE = 5  # every fifth point of the grid says as much as all of them
DENSITY_WEIGHT = 0.1  # a figure shows the density, so it counts too, though less than the cdf


def read(folder: Path) -> tuple[Floats, Floats, Floats]:
    """The grid, the density and the cdf: the share of each point lies evenly about it, half on either side."""
    grid, weights = np.loadtxt(folder / "log10_seconds.txt"), np.loadtxt(folder / "density.txt")
    shares = weights / weights.sum()
    return grid, shares / (grid[1] - grid[0]), np.cumsum(shares) - shares / 2.0


def point_mass(density: Floats, cdf: Floats) -> float:
    """Return the point mass at one second, the clock's tick: the mass left of the density's first valley."""
    rises = np.diff(density) > 0.0
    valley = 1 + np.flatnonzero(~rises[:-1] & rises[1:])[0]
    return float(cdf[valley])


def unpack(parameters: Floats) -> tuple[Floats, Floats, Floats]:
    """Weights of sum 1, the medians' log10, and the standard deviations of log10."""
    logits, centres, log_spreads = np.split(parameters, 3)
    weights = np.exp(logits - logits.max())
    return weights / weights.sum(), centres, np.exp(log_spreads)


def mixture(grid: Floats, weights: Floats, centres: Floats, spreads: Floats) -> tuple[Floats, Floats]:
    """The cdf and the density of log10 seconds, each component cut at the end."""
    normal = (grid[:, None] - centres) / spreads
    scale = weights / ndtr((END - centres) / spreads)
    return ndtr(normal) @ scale, np.exp(-0.5 * normal**2) @ (scale / spreads) / np.sqrt(2.0 * np.pi)


def fit(grid: Floats, density: Floats, cdf: Floats) -> tuple[Floats, Floats, Floats]:
    """Least squares from components spread evenly over the quantiles."""
    centres = np.interp((np.arange(COMPONENTS) + 0.5) / COMPONENTS, cdf, grid)
    spacing = np.gradient(centres)
    start = np.concatenate([np.log(np.interp(centres, grid, density) * spacing), centres, np.log(0.7 * spacing)])
    thin = slice(None, None, STRIDE)

    def misfit(parameters: Floats) -> Floats:
        fitted_cdf, fitted_density = mixture(grid[thin], *unpack(parameters))
        return np.concatenate([fitted_cdf - cdf[thin], DENSITY_WEIGHT * (fitted_density - density[thin])])

    limits = [np.repeat(limit, COMPONENTS) for limit in ((-20.0, 0.0, -4.0), (20.0, 6.5, 1.0))]
    weights, centres, spreads = unpack(least_squares(misfit, start, bounds=limits, max_nfev=2000).x)
    order = np.argsort(centres)
    return weights[order], centres[order], spreads[order]


def constants(folder: Path) -> tuple[float, list[tuple[float, float, float]]]:
    """The point mass, and (weight, median in seconds, sigma of ln seconds) for each component, rounded; of sum 1."""
    grid, density, cdf = read(folder)
    tick = round(point_mass(density, cdf), 6)
    weights, centres, spreads = fit(grid, density, (cdf - tick) / (1.0 - tick))
    shares = np.round((1.0 - tick) * weights, 6)
    shares[-1] = 1.0 - tick - shares[:-1].sum()
    rows = zip(shares, 10.0**centres, np.log(10.0) * spreads, strict=True)
    return tick, [(round(float(w), 6), float(f"{median:.5g}"), round(float(s), 5)) for w, median, s in rows]


def main() -> None:
    """Print the constants and the distance."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DENSITY
    tick, components = constants(folder)
    print(f"_TICK = {tick}\n_COMPONENTS = (")
    for row in components:
        print(f"    {row},")
    print(")")
    grid, density, cdf = read(folder)
    weights, medians, sigmas = np.array(components).T
    fitted_cdf, fitted_density = mixture(grid, weights, np.log10(medians), sigmas / np.log(10.0))
    print(f"largest distance of the cdf: {np.abs(fitted_cdf + tick - cdf).max():.6f}")
    print(f"largest distance of the density: {np.abs(fitted_density - density).max():.6f}")


if __name__ == "__main__":
    main()
