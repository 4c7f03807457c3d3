"""There is one version, the Python package's, and one home; everything else agrees with them."""

from __future__ import annotations

import re
import tomllib
from xml.etree import ElementTree

import yaml

import kquota
from tests.unit.repository.tree import REPOSITORY

POM = {"pom": "http://maven.apache.org/POM/4.0.0"}


def test_the_plug_in_has_the_package_s_version():
    project = ElementTree.parse(REPOSITORY / "callback/pom.xml").getroot()
    assert project.findtext("pom:version", namespaces=POM) == kquota.__version__


def test_the_pipeline_has_the_package_s_version_and_requires_it():
    project = tomllib.loads((REPOSITORY / "spark/pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == kquota.__version__
    assert f"kquota=={kquota.__version__}" in project["dependencies"]


def test_there_is_one_home():
    project, pipeline = (
        tomllib.loads((REPOSITORY / file).read_text("utf-8"))["project"]
        for file in ("pyproject.toml", "spark/pyproject.toml")
    )
    assert (pipeline["urls"], pipeline["authors"]) == (project["urls"], project["authors"])
    (home,), (author,) = project["urls"].values(), project["authors"]
    collection = yaml.safe_load((REPOSITORY / "galaxy.yml").read_text("utf-8"))
    assert collection["repository"] == home
    assert collection["authors"] == [f"{author['name']} <{author['email']}>"]
    plug_in = ElementTree.parse(REPOSITORY / "callback/pom.xml").getroot()
    assert plug_in.findtext("pom:url", namespaces=POM) == home


def test_the_change_log_has_a_section_for_the_version():
    text = (REPOSITORY / "CHANGELOG.md").read_text("utf-8")
    sections = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (unreleased|\d{4}-\d{2}-\d{2})$", text, re.MULTILINE)
    assert sections
    assert sections[0][0] == kquota.__version__
