"""Differentiable multibody dynamics: DeNOC and spatial operators on JAX.

    import jaxdenoc as jd

Functions take one robot and one state; a batch is `jax.vmap`, or `jd.batched` where
speed on a CPU or on several devices matters.
"""

from . import control as control
from . import robots as robots
from . import viz as viz
from ._batched import batched as batched
from ._errors import ModelError as ModelError
from ._errors import ModelWarning as ModelWarning
from ._rules import autodiff_rules as autodiff_rules
from .conditioning import Condition as Condition
from .conditioning import ConditionMonitor as ConditionMonitor
from .conditioning import Health as Health
from .conditioning import condition_number as condition_number
from .conditioning import diagonal_ratio as diagonal_ratio
from .conditioning import extreme_eigenvalues as extreme_eigenvalues
from .conditioning import health as health
from .conditioning import pivot_ratio as pivot_ratio
from .derivatives import bias_acceleration as bias_acceleration
from .derivatives import christoffel_symbols as christoffel_symbols
from .derivatives import forward_dynamics_derivatives as forward_dynamics_derivatives
from .derivatives import globally_diagonalizable as globally_diagonalizable
from .derivatives import inverse_dynamics_derivatives as inverse_dynamics_derivatives
from .derivatives import inverse_dynamics_hessian as inverse_dynamics_hessian
from .derivatives import (
    inverse_dynamics_hessian_product as inverse_dynamics_hessian_product,
)
from .derivatives import jacobian_derivatives as jacobian_derivatives
from .derivatives import jacobian_rate as jacobian_rate
from .derivatives import kinetic_energy_regressor as kinetic_energy_regressor
from .derivatives import mass_factor_rate as mass_factor_rate
from .derivatives import mass_factor_rate_product as mass_factor_rate_product
from .derivatives import mass_matrix_form as mass_matrix_form
from .derivatives import mass_matrix_rate as mass_matrix_rate
from .derivatives import mass_matrix_sensitivity as mass_matrix_sensitivity
from .derivatives import potential_energy_regressor as potential_energy_regressor
from .derivatives import regressor as regressor
from .derivatives import riemann_curvature as riemann_curvature
from .dynamics import DeNOC as DeNOC
from .dynamics import Factors as Factors
from .dynamics import bias_forces as bias_forces
from .dynamics import center_of_mass as center_of_mass
from .dynamics import centroidal_momentum as centroidal_momentum
from .dynamics import coriolis_matrix as coriolis_matrix
from .dynamics import denoc as denoc
from .dynamics import diagonal_acceleration as diagonal_acceleration
from .dynamics import diagonal_coriolis as diagonal_coriolis
from .dynamics import diagonal_coriolis_matrix as diagonal_coriolis_matrix
from .dynamics import elementary_matrices as elementary_matrices
from .dynamics import factorize as factorize
from .dynamics import forward_dynamics as forward_dynamics
from .dynamics import forward_kinematics as forward_kinematics
from .dynamics import frame_pose as frame_pose
from .dynamics import gravity_forces as gravity_forces
from .dynamics import inverse_dynamics as inverse_dynamics
from .dynamics import jacobian as jacobian
from .dynamics import kinetic_energy as kinetic_energy
from .dynamics import mass_matrix as mass_matrix
from .dynamics import operational_inertia_inverse as operational_inertia_inverse
from .dynamics import potential_energy as potential_energy
from .dynamics import reverse_gaussian_elimination as reverse_gaussian_elimination
from .identify import BaseParameters as BaseParameters
from .identify import Excitation as Excitation
from .identify import Identified as Identified
from .identify import LeastSquares as LeastSquares
from .identify import Measurements as Measurements
from .identify import base_parameters as base_parameters
from .identify import excitation as excitation
from .identify import identify as identify
from .identify import least_squares as least_squares
from .identify import patched_urdf as patched_urdf
from .identify import read_measurements as read_measurements
from .io import load as load
from .io import restore as restore
from .io import save as save
from .io import to_urdf as to_urdf
from .model import DHLink as DHLink
from .model import Link as Link
from .model import Model as Model
from .model import Placement as Placement
from .model import build as build
from .model import configuration_rate as configuration_rate
from .model import difference as difference
from .model import from_dh as from_dh
from .model import from_log_cholesky as from_log_cholesky
from .model import from_pseudo_inertia as from_pseudo_inertia
from .model import inertial_parameters as inertial_parameters
from .model import integrate as integrate
from .model import lock as lock
from .model import log_cholesky as log_cholesky
from .model import nearest_consistent as nearest_consistent
from .model import neutral as neutral
from .model import physically_consistent as physically_consistent
from .model import pseudo_inertia as pseudo_inertia
from .model import random_state as random_state
from .model import with_inertial_parameters as with_inertial_parameters
from .operators import Operator as Operator
from .operators import OperatorRates as OperatorRates
from .operators import SpatialOperators as SpatialOperators
from .operators import spatial_operator_rates as spatial_operator_rates
from .operators import spatial_operators as spatial_operators
from .simulate import Dataset as Dataset
from .simulate import Status as Status
from .simulate import TorqueTable as TorqueTable
from .simulate import Trajectory as Trajectory
from .simulate import events as events
from .simulate import generate as generate
from .simulate import rollout as rollout
from .simulate import rollout_memory as rollout_memory
from .simulate import simulate as simulate

__version__ = "0.1.0"
