"""Models from measurements."""

from ._base_parameters import BaseParameters as BaseParameters
from ._base_parameters import base_parameters as base_parameters
from ._excitation import excitation as excitation
from ._excited import Excitation as Excitation
from ._factor import Factor as Factor
from ._factor import factorized as factorized
from ._identified import Identified as Identified
from ._identify import identify as identify
from ._least_squares import LeastSquares as LeastSquares
from ._least_squares import least_squares as least_squares
from ._measurements import Measurements as Measurements
from ._parameters import Parameters as Parameters
from ._parameters import parameters_of as parameters_of
from ._read import read_measurements as read_measurements
from ._write_back import patched_urdf as patched_urdf
