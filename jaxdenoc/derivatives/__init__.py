"""Derivatives of the dynamics in closed form."""

from ._curvature import christoffel_symbols as christoffel_symbols
from ._curvature import curvature_scale as curvature_scale
from ._curvature import globally_diagonalizable as globally_diagonalizable
from ._curvature import riemann_curvature as riemann_curvature
from ._dynamics import forward_dynamics_derivatives as forward_dynamics_derivatives
from ._dynamics import inverse_dynamics_derivatives as inverse_dynamics_derivatives
from ._jacobian import bias_acceleration as bias_acceleration
from ._jacobian import jacobian_derivatives as jacobian_derivatives
from ._jacobian import jacobian_rate as jacobian_rate
from ._mass_factor import mass_factor_rate as mass_factor_rate
from ._mass_factor import mass_factor_rate_product as mass_factor_rate_product
from ._mass_matrix import mass_matrix_form as mass_matrix_form
from ._mass_matrix import mass_matrix_rate as mass_matrix_rate
from ._mass_matrix import mass_matrix_sensitivity as mass_matrix_sensitivity
from ._regressor import kinetic_energy_regressor as kinetic_energy_regressor
from ._regressor import potential_energy_regressor as potential_energy_regressor
from ._regressor import regressor as regressor
from ._second_order import inverse_dynamics_hessian as inverse_dynamics_hessian
from ._second_order import (
    inverse_dynamics_hessian_product as inverse_dynamics_hessian_product,
)
