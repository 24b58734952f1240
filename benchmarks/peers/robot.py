"""The robot's file as each peer can read it: URDF in, URDF or SDF out.

Only what cannot matter to the dynamics is changed: shapes are left out, so that no
mesh is looked for; a base without inertia, or a world to stand on, is spelt out.
"""

import xml.etree.ElementTree as ET

SPECK = "1e-12", "1e-15"  # a link without mass would be dropped, with its joints


def joint_names(urdf, floating):
    """The joints with one degree of freedom, in the order of the states."""
    import jaxdenoc as jd

    names = jd.load(text(plain(urdf)), floating_base=floating).joint_names
    return names[1:] if floating else names


def text(root):
    return ET.tostring(root, encoding="unicode")


def plain(urdf):
    """The file's tree: no shapes, no empty inertias, every origin, and a free base as
    the first link instead of one on a floating joint."""
    root = ET.parse(urdf).getroot()
    for joint in root.findall("joint[@type='floating']"):
        world = joint.find("parent").get("link")
        root.remove(joint)
        root.remove(root.find(f"link[@name='{world}']"))
    for link in root.findall("link"):
        for shape in link.findall("visual") + link.findall("collision"):
            link.remove(shape)
        inertial = link.find("inertial")
        if inertial is not None and float(inertial.find("mass").get("value")) == 0:
            link.remove(inertial)
    for element in root.findall("joint") + root.findall("link/inertial"):
        if element.find("origin") is None:
            ET.SubElement(element, "origin", xyz="0 0 0", rpy="0 0 0")
    return root


def base(root):
    """The link that is no joint's child."""
    children = {joint.find("child").get("link") for joint in root.findall("joint")}
    return next(x for x in root.findall("link") if x.get("name") not in children)


def with_inertias(root, mass="0", moment="0"):
    """A mass and moments of inertia where the file has none; some readers insist."""
    moments = dict.fromkeys(("ixy", "ixz", "iyz"), "0")
    moments |= dict.fromkeys(("ixx", "iyy", "izz"), moment)
    for link in root.findall("link"):
        if link.find("inertial") is None:
            inertial = ET.SubElement(link, "inertial")
            ET.SubElement(inertial, "mass", value=mass)
            ET.SubElement(inertial, "inertia", moments)
    return root


def on_world(root):
    """The base on a floating joint, as MuJoCo wants to be told."""
    name = base(root).get("name")
    ET.SubElement(root, "link", name="world")
    joint = ET.SubElement(root, "joint", name="to_world", type="floating")
    ET.SubElement(joint, "parent", link="world")
    ET.SubElement(joint, "child", link=name)
    return root


def as_sdf(root, floating):
    """SDF text. A link is placed on its parent as the URDF places the joint."""
    sdf = ET.Element("sdf", version="1.7")
    model = ET.SubElement(sdf, "model", name=root.get("name", "robot"))
    joints = root.findall("joint")
    with_inertias(root, *SPECK)
    place = {joint.find("child").get("link"): joint for joint in joints}
    for link in root.findall("link"):
        _sdf_link(model, link, place.get(link.get("name")))
    for joint in joints:
        _sdf_joint(model, joint)
    if not floating:
        ground = ET.SubElement(model, "joint", name="to_world", type="fixed")
        ET.SubElement(ground, "parent").text = "world"
        ET.SubElement(ground, "child").text = base(root).get("name")
    return text(sdf)


def _pose(element):
    origin = element.find("origin")
    origin = {} if origin is None else origin.attrib
    return f"{origin.get('xyz', '0 0 0')} {origin.get('rpy', '0 0 0')}"


def _sdf_link(model, link, joint):
    out = ET.SubElement(model, "link", name=link.get("name"))
    if joint is not None:
        parent = joint.find("parent").get("link")
        ET.SubElement(out, "pose", relative_to=parent).text = _pose(joint)
    inertial = link.find("inertial")
    into = ET.SubElement(out, "inertial")
    ET.SubElement(into, "pose").text = _pose(inertial)
    ET.SubElement(into, "mass").text = inertial.find("mass").get("value")
    inertia = ET.SubElement(into, "inertia")
    for key, value in inertial.find("inertia").attrib.items():
        ET.SubElement(inertia, key).text = value


def _sdf_joint(model, joint):
    out = ET.SubElement(model, "joint", name=joint.get("name"), type=joint.get("type"))
    ET.SubElement(out, "parent").text = joint.find("parent").get("link")
    ET.SubElement(out, "child").text = joint.find("child").get("link")
    axis = joint.find("axis")
    into = ET.SubElement(out, "axis")
    ET.SubElement(into, "xyz").text = "1 0 0" if axis is None else axis.get("xyz")
    ET.SubElement(into, "limit")
