"""Ways in and out: robot descriptions, and archives of models."""

from ._archive import restore as restore
from ._archive import save as save
from ._urdf import load as load
from ._write_urdf import to_urdf as to_urdf
