"""Contradictions of the clients' roles: with their number, and with uplinks on which a role means nothing."""

from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.modulation import AnalogModulation, Blind
from wirelessfl.scenario.roles import MaliciousRole
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.uplink import OverTheAir, jammer_of


def role_rules(scenario: Sections) -> list[Rule]:
    """Rules of ``clients.roles``."""
    registered, jammer, left = scenario.clients.count, jammer_of(scenario.uplink), scenario.clients.count
    rules: list[Rule] = []
    for index, role in enumerate(scenario.clients.roles):
        own, path = role.held_by(registered), f"clients.roles.{index}"
        name, found = "count", str(own)
        if role.fraction is not None:
            name, found = "fraction", f"{role.fraction:g}, which is {own} clients"
        before = ", which the roles before it leave" if index else ""
        beyond = own > left >= 0  # one line for all roles after it
        rules.append((beyond, f"{path}.{name}", found, f"at most {left} of {registered} clients{before}"))
        rules += _on_the_uplink(scenario, role, f"{path}.role")
        left -= own
    turns = jammer is not None and jammer.role == "rotating"
    found = "rotating with clients.roles, one of which could be asked for noise that it knows or does not send"
    rules.append((left < registered and turns, "uplink.jammer.role", found, "external, or no roles"))
    return rules


def _on_the_uplink(scenario: Sections, role: MaliciousRole, path: str) -> list[Rule]:
    uplink = scenario.uplink
    if not isinstance(uplink, OverTheAir):
        found = f"power_cheat with uplink.kind: {uplink.kind}, which decodes bits whatever their power"
        return [(role.role == "power_cheat", path, found, "another role, or uplink.kind: over_the_air")]
    multiplies = role.role in ("scaled", "sign_flip") and role.strength != 1.0
    scheme = f"the modulation {uplink.modulation.scheme}, whose symbols are not proportional to an update"
    return [
        (
            multiplies and not isinstance(uplink.modulation, AnalogModulation | Blind),
            path,
            f"{role.role} by {role.strength:g} with {scheme}",
            "power_cheat, factor: 1, or uplink.modulation.scheme: analog | blind",
        )
    ]
