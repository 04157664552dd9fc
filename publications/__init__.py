"""Four papers, re-run, with a verdict on every claim.

A paper is a module here (`publications.ota` is one to copy): it declares a `Paper` with its studies, claims and
figures, and stands in `publications.catalogue.PAPERS`. Its study files lie in
``scenarios/papers/<paper>/{small,medium,full}/<study>.yaml``, ordinary studies whose ``base`` is a scenario beside them
and whose ``set`` says what a size changes. ``wirelessfl papers run`` runs them and writes ``results/papers/<paper>/``;
``docs/papers/<paper>.md`` takes tables, figures and verdicts from there by markers (`publications.markers`).

This file imports nothing: a scenario may name a member of `publications.clouds`, and the identity of its runs holds the
text of all that is imported with it.
"""
