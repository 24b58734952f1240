"""How much rounding the mass matrix forgives."""

from ._health import Health as Health
from ._health import health as health
from ._lanczos import extreme_eigenvalues as extreme_eigenvalues
from ._monitor import Condition as Condition
from ._monitor import ConditionMonitor as ConditionMonitor
from ._monitor import along as along
from ._monitor import stride as stride
from ._ratios import condition_number as condition_number
from ._ratios import diagonal_ratio as diagonal_ratio
from ._ratios import mass_matrix_diagonal as mass_matrix_diagonal
from ._ratios import pivot_ratio as pivot_ratio
