"""The spatial operators as objects that multiply, transpose and print themselves."""

from ._algebra import Operator as Operator
from ._rates import OperatorRates as OperatorRates
from ._rates import spatial_operator_rates as spatial_operator_rates
from ._spatial import SpatialOperators as SpatialOperators
from ._spatial import spatial_operators as spatial_operators
