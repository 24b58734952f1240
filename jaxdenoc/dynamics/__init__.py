"""Kinematics and dynamics as a user calls them: arrays in, arrays out."""

from ._coriolis import coriolis_matrix as coriolis_matrix
from ._denoc import DeNOC as DeNOC
from ._denoc import denoc as denoc
from ._diagonal import diagonal_acceleration as diagonal_acceleration
from ._diagonal import diagonal_coriolis as diagonal_coriolis
from ._diagonal import diagonal_motion as diagonal_motion
from ._diagonal_matrix import diagonal_coriolis_matrix as diagonal_coriolis_matrix
from ._elimination import elementary_matrices as elementary_matrices
from ._elimination import reverse_gaussian_elimination as reverse_gaussian_elimination
from ._energy import center_of_mass as center_of_mass
from ._energy import centroidal_momentum as centroidal_momentum
from ._energy import kinetic_energy as kinetic_energy
from ._energy import potential_energy as potential_energy
from ._factors import Factors as Factors
from ._factors import factorize as factorize
from ._factors import operational_inertia_inverse as operational_inertia_inverse
from ._forward import forward_dynamics as forward_dynamics
from ._inverse import bias_forces as bias_forces
from ._inverse import gravity_forces as gravity_forces
from ._inverse import inverse_dynamics as inverse_dynamics
from ._kinematics import forward_kinematics as forward_kinematics
from ._kinematics import frame_pose as frame_pose
from ._kinematics import jacobian as jacobian
from ._mass_matrix import mass_matrix as mass_matrix
from ._state import check_state as check_state
from ._state import resistance as resistance
