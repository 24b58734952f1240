"""Links and frames, found by number or by name."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._errors import ModelError
from ._model import Model


def locate(
    model: Model, link: int | str
) -> tuple[int, Float[Array, "3 3"], Float[Array, "3"]]:
    """The link that carries a link or frame, and the frame's pose in it.

    A number counts links; -1 and the base's name are the base. The names of links
    that were merged through fixed joints are frames.
    """
    dtype = model.mass.dtype
    here = jnp.eye(3, dtype=dtype), jnp.zeros(3, dtype)
    if isinstance(link, str):
        if link in model.frame_names:
            k = model.frame_names.index(link)
            placed = model.frame_placement
            return model.frame_links[k], placed.rotation[k], placed.translation[k]
        names = (*model.link_names, model.base_name)
        if link not in names:
            raise ModelError(
                f"Model '{model.name}' has no link or frame '{link}'. It has "
                f"{', '.join((*names, *model.frame_names))}."
            )
        return (-1 if link == model.base_name else names.index(link)), *here
    if not -1 <= link < model.n_links:
        raise ModelError(
            f"Model '{model.name}' has no link {link}: its links are 0 to "
            f"{model.n_links - 1}, and -1 is the base."
        )
    return int(link), *here
