"""Contradictions of the clients' roles: with their number, and with uplinks on which a role means nothing."""

from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.modulation import AnalogModulation
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.uplink import OverTheAir, jammer_of


def role_rules(scenario: Sections) -> list[Rule]:
    """Rules of ``clients.roles``."""
    roles, registered, uplink = scenario.clients.roles, scenario.clients.count, scenario.uplink
    held = [role.held_by(registered) for role in roles]
    rules: list[Rule] = []
    for index, (role, own) in enumerate(zip(roles, held, strict=True)):
        path, left = f"clients.roles.{index}", registered - sum(held[:index])
        name = "count" if role.fraction is None else "fraction"
        found = str(own) if role.fraction is None else f"{role.fraction:g}, which is {own} clients"
        before = ", which the roles before it leave" if index else ""
        beyond = own > left >= 0  # one line for all roles after it
        rules.append((beyond, f"{path}.{name}", found, f"at most {left} of {registered} clients{before}"))
        over_the_air = isinstance(uplink, OverTheAir)
        rules.append(
            (
                role.role == "power_cheat" and not over_the_air,
                f"{path}.role",
                f"power_cheat with uplink.kind: {uplink.kind}, which decodes bits whatever their power",
                "another role, or uplink.kind: over_the_air",
            )
        )
        rules.append(
            (
                role.role == "scaled"
                and isinstance(uplink, OverTheAir)
                and not isinstance(uplink.modulation, AnalogModulation),
                f"{path}.role",
                f"scaled with the modulation {getattr(getattr(uplink, 'modulation', None), 'scheme', '')}, whose "
                "symbols are not proportional to an update",
                "power_cheat | sign_flip, or uplink.modulation.scheme: analog",
            )
        )
    jammer = jammer_of(uplink)
    rules.append(
        (
            sum(held) > 0 and jammer is not None and jammer.role == "rotating",
            "uplink.jammer.role",
            "rotating with clients.roles, one of which could be asked for noise that it knows or does not send",
            "external, or no roles",
        )
    )
    return rules
