"""Least squares with the names that `write_report` looks for."""

from dataclasses import dataclass

import numpy as np

import jaxdenoc as jd


@dataclass(frozen=True)
class Fitted:
    """A fit with what a report is made of."""

    fit: jd.LeastSquares
    history: tuple = ()
    iterations: int = 0
    remarks: tuple = ()

    def __getattr__(self, name):
        return getattr(self.fit, name)

    @property
    def prior_values(self):
        return self.fit.parameters.of(self.fit.prior)

    def predict(self, data):
        return self.fit.predict(data)

    def interval(self, data, level=0.95):
        """Of a measurement, with the noise but not the parameters' own errors."""
        wide = {0.95: 1.96}[level] * np.asarray(self.fit.noise)
        tau = self.fit.predict(data)
        return tau - wide, tau + wide
